"""The store of a home: what is big and never changes, each under a name of its own.

Bytes come first, durable and with a checksum; the row that names them comes second. Nothing is
overwritten: a name is used once. What no row names is garbage.
"""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from urllib.parse import quote

from forebay.errors import DataError
from forebay.home.paths import Home
from forebay.system.files import file_digest, new_file
from forebay.system.message import Message


class Stored(Message):
    """Bytes in the store. name: below its root; checksum: SHA-256 of the content."""

    name: str
    checksum: str
    size_bytes: int


class FolderStore:
    """A store in a folder."""

    def __init__(self, home: Home) -> None:
        """Nothing is made yet."""
        self.root = home.root / "store"

    def put(self, folder: str, stem: str, content: bytes | memoryview) -> Stored:
        """Store bytes; on return they are on disk.

        Args:
            folder: where they go, names with slashes between them.
            stem: what the name begins with, for people who look.
            content: the bytes.

        Raises:
            InfrastructureError: when the disk refuses them.
        """
        name = f"{folder}/{quote(stem, safe='')}-{uuid.uuid4().hex}"
        with new_file(self.root / name) as stream:
            stream.write(content)
        checksum = hashlib.sha256(content).hexdigest()
        return Stored(name=name, checksum=checksum, size_bytes=len(content))

    def path(self, stored: Stored) -> Path:
        """A file with the content.

        Raises:
            DataError: when it is not there, or not as it was stored.
        """
        path = self.root / stored.name
        try:
            found = file_digest(path)
        except (FileNotFoundError, NotADirectoryError):
            raise DataError(f"{path} is missing: restore it from a backup") from None
        if found != stored.checksum:
            raise DataError(
                f"{path} is damaged: it is not what was stored (checksum). Restore it from a backup"
            )
        return path
