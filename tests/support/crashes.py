"""A process that dies at any access to the disk, and what is left after a power failure.

`Disk` watches the file operations of this process and remembers what was synced: of a file its
content, of a folder its entries. Content that Python buffers counts from its flush on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forebay.system.files import trees
from support.synced import Synced, Tree, tree_at

__all__ = ["Died", "Disk", "deaths", "disk", "tree_at"]
OPERATIONS = ("open", "mkdir", "fsync", "rename", "replace", "unlink", "rmdir", "write", "link")


class Died(BaseException):
    """SIGKILL: no handler of the code under test gets to change anything any more."""


class Disk:
    """Dies at operation number `dies_at`, and refuses every one after it."""

    def __init__(self, root: Path, dies_at: int | None = None) -> None:
        self._operations = 0
        self._dies_at = dies_at
        self.synced = Synced(root)

    def touch(self) -> None:
        if self._dies_at is not None and self._operations >= self._dies_at:
            raise Died
        self._operations += 1

    def after_power_loss(self, path: Path, *, named: bool = False) -> Tree | bytes | None:
        """What of `path` is there when only what was synced is.

        named: the disk happened to store the name itself early, as it may.
        """
        if not named:
            return self.synced.left(path)
        return self.synced.content(path.stat().st_ino) if path.exists() else None


@contextmanager
def disk(root: Path, dies_at: int | None = None) -> Iterator[Disk]:
    watched = Disk(root, dies_at)
    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, partial(_watched, watched, getattr(os, name)))
        patch.setattr(trees, "_exchange", partial(_watched, watched, trees._exchange))
        yield watched
    watched.synced.close()


def _watched(watched: Disk, real: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    watched.touch()
    if real.__name__ == "fsync":
        watched.synced.sync(
            arguments[0]
        )  # remembered in place of done: it would take the time it takes
        return None
    return real(*arguments, **more)


def deaths(root: Path, act: Callable[[Disk], object]) -> Iterator[Disk]:
    """`act` once for each operation at which it can die, and at last to its end."""
    at, alive = 0, False
    while not alive:
        with disk(root, at) as watched:
            with suppress(Died):
                act(watched)
                alive = True
            watched._dies_at = None
            yield watched
        at += 1
