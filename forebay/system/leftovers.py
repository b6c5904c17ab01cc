"""What processes that died while they wrote or removed something left below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from forebay.system import trees
from forebay.system.files import writing
from forebay.system.locks import is_held
from forebay.system.unfinished import is_unfinished, remove_left


def find_leftovers(root: Path, skipped: Path, changed_before: float) -> list[Path]:
    """Files and folders that nobody writes or removes any more, in order.

    Args:
        root: the folder that they are below.
        skipped: a folder below it that is not looked at.
        changed_before: `time.time()` before which they changed last.

    Raises:
        InfrastructureError: when the disk refuses something.
    """
    with writing(root):
        return sorted(
            path for path in _found(root, skipped) if _changed_before(path, changed_before)
        )


def remove_leftovers(found: list[Path]) -> list[Path]:
    """Remove what `find_leftovers` has found; what is gone then.

    Somebody may write there again by now: that stays.

    Raises:
        InfrastructureError: when the disk refuses something.
    """
    return [path for path in found if _removed(path)]


def _found(root: Path, skipped: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(root):
        folder = Path(place)
        for name in files:
            if is_unfinished(name) and not is_held(folder / name):
                yield folder / name
        yield from trees.find_left(folder)
        folders[:] = [name for name in folders if folder / name != skipped]


def _changed_before(path: Path, moment: float) -> bool:
    with suppress(FileNotFoundError):  # somebody was faster
        return path.stat().st_mtime < moment
    return False


def _removed(path: Path) -> bool:
    with writing(path):
        return trees.remove_left(path) if path.is_dir() else remove_left(path)
