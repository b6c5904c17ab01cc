"""How much memory this process may still take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

_GROUPS = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """What the machine has left, or what a control group above this process does."""
    return min([int(psutil.virtual_memory().available), *_left_in_groups()])


def _left_in_groups() -> Iterator[int]:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controller, path = line.split(":", 2)
        if controller in {"", "memory"}:  # of version 2, or 1
            root = _GROUPS / controller
            group = root / path.lstrip("/")
            for folder in (group, *group.parents[: len(group.parts) - len(root.parts)]):
                yield from _left(folder)


def _left(folder: Path) -> Iterator[int]:
    for limit, taken in ("memory.max", "anon"), ("memory.limit_in_bytes", "total_rss"):
        text = (folder / limit).read_text().strip() if (folder / limit).exists() else "max"
        if text != "max":
            # Not all that is used: files that were read give way.
            lines = (folder / "memory.stat").read_text().splitlines()
            yield int(text) - int(dict(map(str.split, lines))[taken])
