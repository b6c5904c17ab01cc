"""Finds and removes what processes left below a folder when they died while writing or removing."""

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
    """Unfinished files and folders that nobody is writing or removing any more, sorted.

    Args:
        root: the folder to search.
        skipped: a folder below it that is not searched.
        changed_before: they last changed before this `time.time()`.

    Raises:
        InfrastructureError: when the disk reports an error.
    """
    with writing(root):
        return sorted(
            path for path in _found(root, skipped) if _changed_before(path, changed_before)
        )


def remove_leftovers(found: list[Path]) -> list[Path]:
    """Remove what `find_leftovers` found, and return what was removed.

    What somebody is writing again by now stays.

    Raises:
        InfrastructureError: when the disk reports an error.
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
    with suppress(FileNotFoundError):  # somebody else removed it
        return path.stat().st_mtime < moment
    return False


def _removed(path: Path) -> bool:
    with writing(path):
        return trees.remove_left(path) if path.is_dir() else remove_left(path)
