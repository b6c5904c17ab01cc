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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from forebay.errors import DataError
from forebay.home.store.base import (
    OWNER_NAME,
    Leftover,
    Store,
    Stored,
    folder_of_names,
    is_tree,
    new_name,
    place_of,
    require_name,
)
from forebay.home.store.cache import StoreCache
from forebay.home.store.s3_client import S3Address, calling, client_of, refused, s3_address
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
from forebay.system.instants import to_us

_KEYS_AT_ONCE = 1000  # the most that the protocol takes


class _Object(NamedTuple):
    """An object of a name, or a multipart upload. inside: see `Place`."""

    name: str
    inside: str
    changed_at: int

    @property
    def is_last(self) -> bool:
        """Whether it is the object that makes its name visible."""
        return self.inside == (INDEX_NAME if is_tree(self.name) else "")


class S3Listing:
    """Reads page by page; nothing is kept."""

    def __init__(self, client: Any, address: S3Address) -> None:  # noqa: ANN401 - boto3's
        self._client = client
        self._address = address

    def names(self, below: str = "") -> Iterator[str]:
        """See `Store.names`. below: what names begin with."""
        # Keys come sorted: those of one name are together.
        for name, objects in groupby(self._objects(below), key=lambda each: each.name):
            if any(each.is_last for each in objects):
                yield name

    def leftovers(self, below: str = "") -> Iterator[Leftover]:
        """See `Store.leftovers`. below: what names begin with."""
        found: dict[str, int] = {}
        for name, group in groupby(self._objects(below), key=lambda each: each.name):
            objects = list(group)
            if not any(each.is_last for each in objects):
                found[name] = max(each.changed_at for each in objects)
        for _, upload in self._uploads(below):
            found[upload.name] = max(upload.changed_at, found.get(upload.name, 0))
        for name, changed_at in found.items():
            yield Leftover(name=name, changed_at=changed_at)

    def remove(self, names: Sequence[str]) -> None:
        """See `Store.remove`. Of a tree, the object that makes it visible is removed first."""
        prefix = self._address.prefix
        self._delete(
            f"{prefix}{name}/{INDEX_NAME}" if is_tree(name) else prefix + name for name in names
        )
        for name in filter(is_tree, names):
            self._delete(key for key, _ in self._keys(f"{name}/"))
        removed = frozenset(names)
        for identity, upload in self._uploads():
            if upload.name in removed:
                self._abort(identity)

    def _objects(self, below: str) -> Iterator[_Object]:
        for key, changed_at in self._keys(below):
            place = place_of(key.removeprefix(self._address.prefix))
            if place is not None:
                yield _Object(*place, changed_at)

    def _keys(self, below: str) -> Iterator[tuple[str, int]]:
        for page in self._pages("list_objects_v2", below):
            for each in page.get("Contents", ()):
                yield each["Key"], to_us(each["LastModified"])

    def _uploads(self, below: str = "") -> Iterator[tuple[dict[str, str], _Object]]:
        for page in self._pages("list_multipart_uploads", below):
            for each in page.get("Uploads", ()):
                place = place_of(each["Key"].removeprefix(self._address.prefix))
                if place is not None:
                    identity = {"Key": each["Key"], "UploadId": each["UploadId"]}
                    yield identity, _Object(*place, to_us(each["Initiated"]))

    def _pages(self, operation: str, below: str) -> Iterator[Any]:
        with calling(self._address.url(below)):
            yield from self._client.get_paginator(operation).paginate(
                Bucket=self._address.bucket, Prefix=self._address.prefix + below
            )

    def _delete(self, keys: Iterable[str]) -> None:
        """Delete objects; missing ones count as deleted."""
        keys = iter(keys)
        while some := list(islice(keys, _KEYS_AT_ONCE)):
            with calling(self._address.url()):
                answer = self._client.delete_objects(
                    Bucket=self._address.bucket,
                    Delete={"Objects": [{"Key": key} for key in some], "Quiet": True},
                )
            for error in answer.get("Errors", ()):
                place = self._address.url(error["Key"].removeprefix(self._address.prefix))
                raise refused(place, error.get("Code", ""), error.get("Message", ""))

    def _abort(self, identity: dict[str, str]) -> None:
        another_was_first = suppress(self._client.exceptions.NoSuchUpload)
        with calling(self._address.url()), another_was_first:
            self._client.abort_multipart_upload(Bucket=self._address.bucket, **identity)


class ObjectStore(Store):
    """See `Store`."""

    knows_writers = False

    def __init__(self, address: S3Address, cache: StoreCache) -> None:
        self._address = address
        self._cache = cache
        self._opened: tuple[int, Any] | None = None

    def put(self, folder: str, stem: str, content: bytes | memoryview) -> Stored:
        name = new_name(folder, stem)
        self._transfers.upload([(name, io.BytesIO(content))])
        checksum = hashlib.sha256(content).hexdigest()
        return Stored(name=name, checksum=checksum, size_bytes=len(content))

    def put_tree(self, folder: str, stem: str, source: Path) -> Stored:
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
        name, url = require_name(stored.name), self.url(stored)
        return self._cache.copy(
            name,
            lambda copy: verify_file(copy, stored.checksum, url),
            lambda copy: self._transfers.download([(name, str(copy))]),
        )

    def tree(self, stored: Stored) -> Path:
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
        name = require_name(stored.name)
        key = self._address.key(f"{name}/{INDEX_NAME}" if is_tree(name) else name)
        try:
            with calling(self._address.url(name)):
                self._client.head_object(Bucket=self._address.bucket, Key=key)
        except DataError:
            return False
        return True

    def url(self, stored: Stored) -> str:
        name = require_name(stored.name)
        return self._address.url(f"{name}/{CONTENT_NAME}" if is_tree(name) else name)

    def owner(self) -> str | None:
        try:
            return self._bytes(OWNER_NAME).decode().strip()
        except DataError:  # nobody has claimed it
            return None

    def claim(self, home_id: str) -> None:
        self._transfers.upload([(OWNER_NAME, io.BytesIO(f"{home_id}\n".encode()))])

    def owner_url(self) -> str:
        return self._address.url(OWNER_NAME)

    def names(self, folder: str = "") -> Iterator[str]:
        return self._listing.names(_below(folder))

    def leftovers(self, folder: str = "") -> Iterator[Leftover]:
        return self._listing.leftovers(_below(folder))

    def remove(self, names: Iterable[str]) -> None:
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
