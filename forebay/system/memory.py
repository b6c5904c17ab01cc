"""How much memory this process may still take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

_GROUPS = Path("/sys/fs/cgroup")
# By controller, which version 2 does not name: the limit, and what of the statistics counts. Not
# all that is used does: files that were read give way.
_FILES: Mapping[str, tuple[str, str]] = {
    "": ("memory.max", "anon"),
    "memory": ("memory.limit_in_bytes", "total_rss"),
}


def available_bytes() -> int:
    """What the machine has left, or a control group that this process is in."""
    left = [limit - taken for limit, taken in _groups()]
    return min([int(psutil.virtual_memory().available), *left])


def limit_bytes() -> int:
    """What the machine has, or a control group that this process is in may take."""
    return min([int(psutil.virtual_memory().total), *(limit for limit, _ in _groups())])


def _groups() -> Iterator[tuple[int, int]]:
    """Limits, and what of each is taken."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controller, path = line.split(":", 2)
        if controller in _FILES:
            root = _GROUPS / controller
            group = root / path.lstrip("/")
            for folder in (group, *group.parents[: len(group.parts) - len(root.parts)]):
                yield from _limit(folder, *_FILES[controller])


def _limit(folder: Path, limit: str, taken: str) -> Iterator[tuple[int, int]]:
    text = (folder / limit).read_text().strip() if (folder / limit).exists() else "max"
    if text != "max":
        statistics = dict(
            line.split() for line in (folder / "memory.stat").read_text().splitlines()
        )
        yield int(text), int(statistics[taken])
