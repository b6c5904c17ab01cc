"""Files below a local folder: names that are the same each time, whatever links there are."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_Inode = tuple[int, int]


class _Folder(NamedTuple):
    """A folder, and what is in it that is not a folder."""

    path: str
    files: list[os.DirEntry[str]]


def files_below(folder: str, is_hidden: Callable[[str], bool]) -> Iterator[os.DirEntry[str]]:
    """Everything but folders; nothing where the folder is gone.

    Real folders come before links to folders, so that names never depend on the order on disk. A
    link to a folder that has another name too brings its files once more, under that name. One
    that leads back, to a folder that it is in, brings nothing.

    Args:
        folder: where to begin.
        is_hidden: names of folders that are left out.

    Raises:
        OSError: when the disk refuses.
    """
    links, known = deque([folder]), dict[_Inode, str]()
    while links:
        top = links.popleft()
        inode = _inode_of(top)
        name = None if inode is None else known.get(inode)
        if name is not None and top.startswith(f"{name}/"):
            continue
        found: list[str] = []
        for each in _real_folders(top, is_hidden, found):
            if name is None and (inode := _inode_of(each.path)) is not None:
                known.setdefault(inode, each.path)
            yield from each.files
        if name is None:  # otherwise they were followed under its other name
            links.extend(sorted(found))


def _real_folders(
    top: str, is_hidden: Callable[[str], bool], links: list[str]
) -> Iterator[_Folder]:
    """A folder and all below it, but for those behind links: these are added to `links`."""
    pending = [top]
    while pending:
        path = pending.pop()
        try:
            entries = list(os.scandir(path))
        except FileNotFoundError:
            continue
        shown = [entry for entry in entries if entry.is_dir() and not is_hidden(entry.name)]
        links += [entry.path for entry in shown if entry.is_symlink()]
        pending += [entry.path for entry in shown if not entry.is_symlink()]
        yield _Folder(path, [entry for entry in entries if not entry.is_dir()])


def _inode_of(folder: str) -> _Inode | None:
    """Of a folder, by whatever name; None where it is gone."""
    try:
        info = Path(folder).stat()
    except FileNotFoundError:
        return None
    return info.st_dev, info.st_ino
