"""Folders to store, and names under which nothing was ever stored."""

from __future__ import annotations

from pathlib import Path

from forebay.home.store.base import Stored

NEVER = Stored(name=f"a/b-{'0' * 32}", checksum="0" * 64, size_bytes=1)
NEVER_A_TREE = Stored(name=f"a/b-{'0' * 32}.tree", checksum="0" * 64, size_bytes=1)


def make_tree(root: Path, files: int = 3) -> Path:
    """A folder as a SavedModel is: folders in folders, empty ones and files, odd names."""
    (root / "variables" / "deep").mkdir(parents=True)
    (root / "assets").mkdir()
    (root / "plan.pb").write_bytes(b"plan")
    (root / "empty").touch()
    (root / ".hidden è ü +&?#%20 $").write_bytes(b"odd")
    (root / "variables" / "deep" / "one").write_bytes(b"deep")
    for number in range(files):
        (root / "variables" / f"data-{number}").write_bytes(f"content {number}".encode() * 9)
    return root


def read_tree(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }
