"""A store in a bucket of an S3 server, through boto3.

A file is one object, which becomes visible once it is complete. A tree is one object per file and
an index that is stored last: without it, the tree does not exist. What is read is copied once to a
folder on this host, and verified there.

Why not pyarrow's S3 file system: it can neither list nor abort the multipart uploads that a killed
writer left, it creates an object for the folder of each object that it removes, it removes objects
one by one, and the texts of its errors do not distinguish a missing bucket from a missing object.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from forebay.errors import DataError
from forebay.home.store.base import (
    OWNER_NAME,
    Leftover,
    Store,
    Stored,
    folder_of_names,
    is_tree,
    new_name,
    require_name,
)
from forebay.home.store.cache import StoreCache
from forebay.home.store.s3_client import S3Address, calling, client_of, s3_address
from forebay.home.store.s3_listing import S3Listing
from forebay.home.store.s3_transfers import S3Transfers
from forebay.home.store.trees import (
    CONTENT_NAME,
    INDEX_NAME,
    TreeIndex,
    index_bytes,
    indexed,
    list_tree,
    read_index,
    require_size,
    stored_tree,
    verify_file,
    verify_tree,
)
from forebay.system.files.durable import writing


class ObjectStore(Store):
    """See `Store`."""

    knows_writers = False

    def __init__(self, address: S3Address, cache: StoreCache) -> None:
        """Nothing is opened yet."""
        self._address = address
        self._cache = cache
        self._opened: tuple[int, Any] | None = None

    def put(self, folder: str, stem: str, content: bytes | memoryview) -> Stored:
        """See `Store.put`."""
        name = new_name(folder, stem)
        self._transfers.upload([(name, io.BytesIO(content))])
        checksum = hashlib.sha256(content).hexdigest()
        return Stored(name=name, checksum=checksum, size_bytes=len(content))

    def put_tree(self, folder: str, stem: str, source: Path) -> Stored:
        """See `Store.put_tree`."""
        name = new_name(folder, stem, tree=True)
        below = f"{name}/{CONTENT_NAME}"
        with writing(source):
            listed = list_tree(source)
            files = tuple(indexed(source, path) for path in listed.files)
            self._transfers.upload(
                (f"{below}/{file.path}", str(source / file.path)) for file in files
            )
        index = TreeIndex(folders=listed.folders, files=files)
        content = index_bytes(index)
        self._transfers.upload([(f"{name}/{INDEX_NAME}", io.BytesIO(content))])
        return stored_tree(name, index, content)

    def path(self, stored: Stored) -> Path:
        """See `Store.path`."""
        name, url = require_name(stored.name), self.url(stored)
        return self._cache.copy(
            name,
            lambda copy: verify_file(copy, stored.checksum, url),
            lambda copy: self._transfers.download([(name, str(copy))]),
        )

    def tree(self, stored: Stored) -> Path:
        """See `Store.tree`."""
        url = self._address.url(require_name(stored.name))
        copy = self._cache.copy(
            stored.name,
            lambda copy: verify_tree(copy, stored, url),
            lambda copy: self._download_tree(stored, copy),
        )
        return copy / CONTENT_NAME

    def verify(self, stored: Stored) -> None:
        """See `Store.verify`. Nothing is kept on this host."""
        name = require_name(stored.name)
        if is_tree(name):
            index = read_index(self._bytes(f"{name}/{INDEX_NAME}"), stored, self._address.url(name))
            below = f"{name}/{CONTENT_NAME}"
            self._read({f"{below}/{file.path}": file.checksum for file in index.files})
        else:
            size_bytes = self._read({name: stored.checksum})
            require_size(stored, size_bytes, self._address.url(name))

    def is_there(self, stored: Stored) -> bool:
        """See `Store.is_there`."""
        name = require_name(stored.name)
        key = self._address.key(f"{name}/{INDEX_NAME}" if is_tree(name) else name)
        try:
            with calling(self._address.url(name)):
                self._client.head_object(Bucket=self._address.bucket, Key=key)
        except DataError:
            return False
        return True

    def url(self, stored: Stored) -> str:
        """See `Store.url`."""
        name = require_name(stored.name)
        return self._address.url(f"{name}/{CONTENT_NAME}" if is_tree(name) else name)

    def owner(self) -> str | None:
        """See `Store.owner`."""
        try:
            return self._bytes(OWNER_NAME).decode().strip()
        except DataError:  # nobody has claimed it
            return None

    def claim(self, home_id: str) -> None:
        """See `Store.claim`."""
        self._transfers.upload([(OWNER_NAME, io.BytesIO(f"{home_id}\n".encode()))])

    def owner_url(self) -> str:
        """See `Store.owner_url`."""
        return self._address.url(OWNER_NAME)

    def names(self, folder: str = "") -> Iterator[str]:
        """See `Store.names`."""
        return self._listing.names(_below(folder))

    def leftovers(self, folder: str = "") -> Iterator[Leftover]:
        """See `Store.leftovers`."""
        return self._listing.leftovers(_below(folder))

    def remove(self, names: Iterable[str]) -> None:
        """See `Store.remove`."""
        self._listing.remove([require_name(name) for name in names])

    @property
    def _client(self) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        """The client of this process: a forked child shares no connection with its parent."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), client_of(self._address)
        return self._opened[1]

    @property
    def _transfers(self) -> S3Transfers:
        return S3Transfers(self._client, self._address)

    @property
    def _listing(self) -> S3Listing:
        return S3Listing(self._client, self._address)

    def _read(self, checksums: Mapping[str, str]) -> int:
        """Read objects and verify them; how many bytes they hold."""
        size_bytes = 0
        for name, checksum in checksums.items():
            digest = self._transfers.digest(name)
            digest.require(checksum, self._address.url(name))
            size_bytes += digest.size_bytes
        return size_bytes

    def _bytes(self, name: str) -> bytes:
        content = io.BytesIO()
        self._transfers.download([(name, content)])
        return content.getvalue()

    def _download_tree(self, stored: Stored, copy: Path) -> None:
        content = self._bytes(f"{stored.name}/{INDEX_NAME}")
        index = read_index(content, stored, self._address.url(stored.name))
        below = copy / CONTENT_NAME
        for folder in (copy, below, *(below / path for path in index.folders)):
            folder.mkdir()
        (copy / INDEX_NAME).write_bytes(content)
        self._transfers.download(
            (f"{stored.name}/{CONTENT_NAME}/{file.path}", str(below / file.path))
            for file in index.files
        )


def _below(folder: str) -> str:
    return f"{folder_of_names(folder)}/" if folder else ""


def object_store(url: str, cache_folder: Path) -> ObjectStore:
    """The store at an address, with its copies in a folder of this host.

    Raises:
        ConfigError: when the address is not valid.
    """
    return ObjectStore(s3_address(url), StoreCache(cache_folder))
