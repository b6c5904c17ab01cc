"""Durable trees: a folder gets its name once everything in it is on disk, or never."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from forebay.errors import InfrastructureError
from forebay.system.files.durable import is_unfinished, make_folder, remove_left, sync, writing
from forebay.system.files.locks import FileLock, is_held, locked

# Beside the trees of a folder: lists of trees skip hidden names.
UNFINISHED_NAME, _REMOVED_NAME, _LOCK_NAME = ".unfinished", ".removed", ".trees.lock"
_LOCK_SECONDS = 120.0
_LEFT_SECONDS = 0.1  # a check whether the lock is held takes it for microseconds
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class TreeExistsError(InfrastructureError):
    """A tree of this name already exists."""


@contextmanager
def new_tree(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """An empty folder for the block to fill, which gets the name `target` at its end.

    An error removes it; a killed process leaves it under a hidden name, until the next tree that is
    written beside it, or `forebay gc`, removes it.

    target: where the tree goes; missing folders above it are created.
    replace: whether an existing tree is replaced in one step; otherwise it is kept.

    Raises:
        TreeExistsError: when the target exists, from before the block or since, and is kept.
        InfrastructureError: when the disk reports an error, or another writer takes too long.
    """
    unfinished = target.with_name(UNFINISHED_NAME)
    with writing(target):
        make_folder(target.parent)
        with _alone_beside(target):
            if target.exists() and not replace:
                raise TreeExistsError(f"{target} already exists")
            if unfinished.exists():
                shutil.rmtree(unfinished)
            try:
                unfinished.mkdir()
                yield unfinished
                name_tree(unfinished, target, replace=replace)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)


def name_tree(folder: Path, target: Path, *, replace: bool = False) -> None:
    """Rename a finished folder, on the same file system, once everything in it is on disk.

    Raises:
        TreeExistsError: when the target exists and is not to be replaced.
    """
    with writing(target):
        _sync_tree(folder)
        if replace and target.exists():
            _exchange(folder, target)
            sync(target.parent)
            shutil.rmtree(folder)
            return
        try:
            folder.rename(target)
        except OSError as error:
            if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
                raise TreeExistsError(f"{target} already exists") from error
            raise
        sync(target.parent)


def remove_tree(folder: Path) -> None:
    """Remove a folder if it exists. Its name goes in one step: nobody finds half of it.

    What a killed process left of an earlier removal beside it is removed too.
    """
    removed = folder.with_name(_REMOVED_NAME)
    if not folder.exists() and not removed.exists():
        return
    with writing(folder), _alone_beside(folder):
        if removed.exists():
            shutil.rmtree(removed)
        if folder.exists():
            folder.rename(removed)
            sync(folder.parent)
            shutil.rmtree(removed)


def find_left(folder: Path) -> list[Path]:
    """Unfinished or half-removed trees that dead processes left in a folder."""
    lock = folder / _LOCK_NAME
    if not lock.exists() or is_held(lock):
        return []
    return [path for name in (UNFINISHED_NAME, _REMOVED_NAME) if (path := folder / name).exists()]


def _alone_beside(folder: Path) -> AbstractContextManager[None]:
    """Hold the lock under which trees of one parent are written and removed one at a time."""
    return locked(folder.with_name(_LOCK_NAME), _LOCK_SECONDS)


def _sync_tree(folder: Path) -> None:
    """Sync every file below a folder, and every folder: it holds the names of what is in it."""
    for path in folder.iterdir():
        if path.is_dir():
            _sync_tree(path)
        else:
            sync(path)
    sync(folder)


def _exchange(one: Path, other: Path) -> None:
    """Swap two names in one step: a kill never leaves both missing."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def find_leftovers(root: Path, skipped: Path, changed_before: float) -> list[Path]:
    """Unfinished files and folders that nobody is writing or removing any more, sorted.

    skipped: a folder below it that is not searched.
    changed_before: they last changed before this `time.time()`.

    Raises:
        InfrastructureError: when the disk reports an error.
    """
    with writing(root):
        return sorted(_found(root, skipped, changed_before))


def remove_leftovers(found: list[Path]) -> list[Path]:
    """Remove what `find_leftovers` found, and return what was removed.

    What somebody is writing again by now stays.

    Raises:
        InfrastructureError: when the disk reports an error.
    """
    return [path for path in found if _removed(path)]


def _found(root: Path, skipped: Path, changed_before: float) -> Iterator[Path]:
    for place, folders, files in os.walk(root):
        folder = Path(place)
        begun = [folder / name for name in files if is_unfinished(name)]
        left = [path for path in begun if not is_held(path)]
        for path in (*left, *find_left(folder)):
            with suppress(FileNotFoundError):  # somebody else removed it
                if path.stat().st_mtime < changed_before:
                    yield path
        folders[:] = [name for name in folders if folder / name != skipped]


def _removed(path: Path) -> bool:
    """Remove a leftover; False if somebody is writing or removing there."""
    with writing(path):
        if not path.is_dir():
            return remove_left(path)
        with suppress(FileNotFoundError):  # the folder that it is in is being removed
            lock = FileLock(path.with_name(_LOCK_NAME))
            if not lock.acquire(_LEFT_SECONDS):
                return False
            try:
                shutil.rmtree(path)
            finally:
                lock.release()
    return True
