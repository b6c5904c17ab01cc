"""Memory that is left, by the machine or by a control group of either version."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from forebay.system import memory

MIB = 1 << 20


def group(folder: Path, controller: str, limit: str) -> None:
    """30 MiB of processes, and 60 MiB of files that were read, which give way."""
    folder.mkdir(parents=True, exist_ok=True)
    name, taken = memory._FILES[controller]
    (folder / name).write_text(f"{limit}\n")
    (folder / "memory.stat").write_text(f"{taken} {30 * MIB}\nfile {60 * MIB}\n")


def test_it_is_at_most_what_the_machine_has() -> None:
    assert 0 < memory.available_bytes() <= memory.limit_bytes()
    assert memory.limit_bytes() <= psutil.virtual_memory().total


@pytest.mark.parametrize("controller", ["", "memory"])
def test_a_group_may_have_less(tmp_path: Path, controller: str) -> None:
    def limits() -> list[tuple[int, int]]:
        return list(memory._limit(tmp_path, *memory._FILES[controller]))

    assert limits() == []
    group(tmp_path, controller, "max")
    assert limits() == []
    group(tmp_path, controller, str(100 * MIB))
    assert limits() == [(100 * MIB, 30 * MIB)]


def test_it_is_the_group_that_has_least(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controller, path = line.split(":", 2)
        if controller in memory._FILES:
            group(tmp_path / controller, controller, str(100 * MIB))
            group(tmp_path / controller / path.lstrip("/"), controller, str(80 * MIB))
    assert memory.available_bytes() == 50 * MIB
    assert memory.limit_bytes() == 80 * MIB
