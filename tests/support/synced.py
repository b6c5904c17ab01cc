"""What a power failure leaves: of each file what was synced, of each folder its entries.

Content that Python buffers counts from its flush on. Files are told apart by inode, and one that is
known is held, so that no new one gets its number.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

# Nested: folders are dicts, files their content.
Tree = dict[str, Any]
_OPEN = os.open


class Synced:
    """files: synced content by inode; folders: synced entries, names with their inodes."""

    def __init__(self, root: Path) -> None:
        """What is there was synced long ago."""
        self.root = root.resolve()
        self.files: dict[int, bytes] = {}
        self.folders: dict[int, dict[str, int]] = {}
        self._held: dict[int, int] = {}
        for path in [root, *root.rglob("*")]:
            descriptor = _OPEN(path, os.O_RDONLY)
            self.sync(descriptor)
            os.close(descriptor)

    def sync(self, descriptor: int) -> None:
        """From now on a loss of power leaves what this file or folder holds now.

        What is not below the root is somebody else's.
        """
        place = f"/proc/self/fd/{descriptor}"
        if not Path(place).readlink().is_relative_to(self.root):
            return
        number = self.hold(place, follow=True)
        if os.path.isdir(place):  # noqa: PTH112 - as the kernel names it
            self.folders[number] = self._entries(place)
        else:
            self.files[number] = Path(place).read_bytes()

    def _entries(self, folder: str) -> dict[str, int]:
        found = {}
        for name in os.listdir(folder):  # noqa: PTH208 - names alone
            with suppress(FileNotFoundError):  # SQLite removes its journals in another thread
                found[name] = self.hold(f"{folder}/{name}")
        return found

    def number(self, path: Path) -> int | None:
        """The inode that a loss of power leaves under this path, which is below the root."""
        found = self.root.stat().st_ino
        for part in path.resolve().relative_to(self.root).parts:
            if part not in self.folders.get(found, {}):
                return None
            found = self.folders[found][part]
        return found

    def left(self, path: Path) -> Tree | bytes | None:
        number = self.number(path)
        return None if number is None else self.content(number)

    def content(self, number: int) -> Tree | bytes:
        """What a loss of power leaves of an inode whose name is there."""
        if number in self.folders:
            entries = self.folders[number].items()
            return {name: self.content(each) for name, each in entries}
        return self.files.get(number, b"never synced")

    def place(self, number: int) -> str:
        """Where the content of an inode is now, whatever it is called and even without a name."""
        return f"/proc/self/fd/{self._held[number]}"

    def hold(self, place: str, *, follow: bool = False) -> int:
        """The inode at a place, which no new file gets from now on. follow: a symbolic link."""
        descriptor = _OPEN(place, os.O_PATH if follow else os.O_PATH | os.O_NOFOLLOW)
        number = os.fstat(descriptor).st_ino
        if number in self._held:
            os.close(descriptor)
        else:
            self._held[number] = descriptor
        return number

    def close(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)


def tree_at(folder: Path) -> Tree | None:
    if not folder.is_dir():
        return None
    return {
        path.name: tree_at(path) if path.is_dir() else path.read_bytes()
        for path in folder.iterdir()
    }
