"""A serving path in a folder: each model is written beside the others, then named in one step."""

from __future__ import annotations

import shutil
from pathlib import Path

from forebay.executors.serving.place import MODEL, ServingPlace, integer_of
from forebay.home.store.trees import list_tree
from forebay.system.files.durable import make_folder, write_atomically, writing
from forebay.system.files.trees import new_tree, remove_tree
from forebay.system.liveness import progressed


class FolderPlace(ServingPlace):
    def __init__(self, root: Path) -> None:
        self._root = root
        self.url = str(root)

    def read(self, name: str) -> bytes | None:
        path = self._root / name
        with writing(path):
            return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        write_atomically(self._root / name, content)

    def integers(self) -> dict[int, bool]:
        with writing(self._root):
            make_folder(self._root)
            found = ((integer_of(each.name), each) for each in self._root.iterdir())
            return {
                integer: (each / MODEL).is_file()
                for integer, each in found
                if integer is not None and each.is_dir()
            }

    def put(self, integer: int, source: Path) -> None:
        """Copied, not linked: whoever serves it cannot damage what is kept in the store."""
        listed = list_tree(source)
        with new_tree(self._root / str(integer), replace=True) as folder:
            for name in listed.folders:
                (folder / name).mkdir()
            for name in listed.files:
                # With the modes of new files: a server is another user, and the store is private.
                shutil.copyfile(source / name, folder / name)
                progressed()

    def remove(self, integer: int) -> None:
        remove_tree(self._root / str(integer))
