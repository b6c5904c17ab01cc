"""The driver's journal survives torn writes and refuses damage in the middle."""

from __future__ import annotations

import resource
import signal
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from forebay.errors import InfrastructureError
from forebay.executors.driver import journal as module
from forebay.executors.driver.journal import Journal


def appended(path: Path, *trainers: int) -> list[dict[str, object]]:
    """What was there before so many trainers opened a window."""
    journal = Journal(path)
    for number in trainers:
        journal.append("open", trainer=number)
    journal.close()
    return journal.records


def test_records_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "journal" / "driver.jsonl"
    journal = Journal(path)
    journal.append("open", trainer=1)
    journal.append("failure", task="w", message="m")
    journal.close()
    assert appended(path) == [
        {"kind": "open", "trainer": 1},
        {"kind": "failure", "task": "w", "message": "m"},
    ]
    assert path.stat().st_mode & 0o777 == 0o600, "its owner's alone"


def test_a_torn_tail_never_counted_and_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "driver.jsonl"
    appended(path, 1, 2)
    whole = path.read_bytes()
    for length in range(len(whole.splitlines(keepends=True)[0]), len(whole)):
        path.write_bytes(whole[:length])
        assert appended(path, 3) == [{"kind": "open", "trainer": 1}]
        assert [record["trainer"] for record in appended(path)] == [1, 3]


@pytest.mark.parametrize(
    ("number", "damage"),
    [(1, lambda line: line.replace(b"open", b"0pen")), (2, lambda line: b"0" + line)],
    ids=["a changed byte", "one byte more"],
)
def test_damage_before_the_last_record_is_told(
    tmp_path: Path, number: int, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "driver.jsonl"
    appended(path, 0, 1, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = damage(lines[number - 1])
    path.write_bytes(b"".join(lines))
    with pytest.raises(InfrastructureError, match=f"jsonl:{number} is damaged"):
        Journal(path)


def test_a_full_disk_is_an_error_and_leaves_no_half_record(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "driver.jsonl")
    journal.append("open", trainer=1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = (tmp_path / "driver.jsonl").stat().st_size
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, before[1]))
        with pytest.raises(InfrastructureError, match="journal cannot be written"):
            journal.append("failure", task="w" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    journal.append("failure", task="v")
    journal.close()
    assert [record["kind"] for record in appended(tmp_path / "driver.jsonl")] == ["open", "failure"]


def test_what_is_no_record_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "driver.jsonl"
    path.write_bytes(f"{zlib.crc32(b'[1]'):08x} [1]\n".encode() * 2)
    with pytest.raises(InfrastructureError, match="jsonl:1 is damaged"):
        Journal(path)


def test_one_driver_writes_one_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0)
    path = tmp_path / "driver.jsonl"
    journal = Journal(path)
    with pytest.raises(InfrastructureError, match="another driver writes"):
        Journal(path)
    journal.close()
    assert appended(path) == []
