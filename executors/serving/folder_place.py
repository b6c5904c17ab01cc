"""A serving path in a folder: each model is written beside the others, then named in one step."""

from __future__ import annotations

import shutil
from pathlib import Path

from forebay.home.store.trees import list_tree
from forebay.system.files.durable import make_folder, write_atomically, writing
from forebay.system.files.trees import new_tree, remove_tree
from forebay.system.liveness import progressed

MODEL = "saved_model.pb"  # a model server takes a folder for a model once this is in it


class FolderPlace:
    """One serving path, for one writer at a time and any number of readers.

    `BucketPlace` is the same in a bucket. Each method raises InfrastructureError when the path
    cannot be written, or not be reached in time; the error names it. url: for people.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.url = str(root)

    def read(self, name: str) -> bytes | None:
        """A file beside the models; None if it is not there."""
        path = self._root / name
        with writing(path):
            return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file beside the models in one step; on return it is durable."""
        write_atomically(self._root / name, content)

    def integers(self) -> dict[int, bool]:
        """Each PATH/INTEGER/, and whether its model is whole."""
        with writing(self._root):
            make_folder(self._root)
            found = ((integer_of(each.name), each) for each in self._root.iterdir())
            return {
                integer: (each / MODEL).is_file()
                for integer, each in found
                if integer is not None and each.is_dir()
            }

    def put(self, integer: int, source: Path) -> None:
        """Write a model so that no reader finds half of it; in place of what a kill left.

        Copied, not linked: whoever serves it cannot damage what is kept in the store.
        """
        listed = list_tree(source)
        with new_tree(self._root / str(integer), replace=True) as folder:
            for name in listed.folders:
                (folder / name).mkdir()
            for name in listed.files:
                # With the modes of new files: a server is another user, and the store is private.
                shutil.copyfile(source / name, folder / name)
                progressed()

    def remove(self, integer: int) -> None:
        """Remove a model: no reader finds half of it, whenever this process dies."""
        remove_tree(self._root / str(integer))


def integer_of(name: str) -> int | None:
    return int(name) if name.isascii() and name.isdecimal() and str(int(name)) == name else None
