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
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
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
    name_in,
    new_name,
    require_name,
)
from forebay.home.store.cache import StoreCache
from forebay.home.store.s3_client import calling, s3_address
from forebay.home.store.s3_objects import OBJECTS, UPLOADS, S3Objects
from forebay.home.store.trees import (
    CONTENT_NAME,
    INDEX_NAME,
    damaged,
    index_of,
    list_tree,
    read_index,
    require_size,
    stored_tree,
    verify_file,
    verify_tree,
)
from forebay.system.files.durable import writing
from forebay.system.instants import to_us


class ObjectStore(Store):
    """The store at an address, with its copies in a folder of this host.

    Raises:
        ConfigError: when the address is not valid.
    """

    knows_writers = False

    def __init__(self, url: str, cache_folder: Path) -> None:
        self._address = s3_address(url)
        self._cache = StoreCache(cache_folder)
        self._objects = S3Objects(self._address)

    def put(self, folder: str, stem: str, content: bytes | memoryview) -> Stored:
        name = new_name(folder, stem)
        self._objects.transfers.upload([(name, io.BytesIO(content))])
        checksum = hashlib.sha256(content).hexdigest()
        return Stored(name=name, checksum=checksum, size_bytes=len(content))

    def put_tree(self, folder: str, stem: str, source: Path) -> Stored:
        name = new_name(folder, stem, tree=True)
        below = f"{name}/{CONTENT_NAME}"
        with writing(source):
            index = index_of(source, list_tree(source))
            self._objects.transfers.upload(
                (f"{below}/{file.path}", str(source / file.path)) for file in index.files
            )
        content, stored = stored_tree(name, index)
        self._objects.transfers.upload([(_last(name), io.BytesIO(content))])
        return stored

    def path(self, stored: Stored) -> Path:
        name, url = require_name(stored.name), self.url(stored)
        return self._cache.copy(
            name,
            lambda copy: verify_file(copy, stored.checksum, url),
            lambda copy: self._objects.transfers.download([(name, str(copy))]),
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
        url = self._address.url(name)
        if is_tree(name):
            for file in read_index(self._objects.content(_last(name)), stored, url).files:
                self._verified_bytes(f"{name}/{CONTENT_NAME}/{file.path}", file.checksum)
        else:
            require_size(stored, self._verified_bytes(name, stored.checksum), url)

    def is_there(self, stored: Stored) -> bool:
        name = require_name(stored.name)
        key = self._address.key(_last(name))
        with suppress(DataError), calling(self._address.url(name)):
            self._objects.client.head_object(Bucket=self._address.bucket, Key=key)
            return True
        return False

    def url(self, stored: Stored) -> str:
        name = require_name(stored.name)
        return self._address.url(f"{name}/{CONTENT_NAME}" if is_tree(name) else name)

    def owner(self) -> str | None:
        with suppress(DataError):  # nobody has claimed it
            return self._objects.content(OWNER_NAME).decode().strip()
        return None

    def claim(self, home_id: str) -> None:
        self._objects.transfers.upload([(OWNER_NAME, io.BytesIO(f"{home_id}\n".encode()))])

    def owner_url(self) -> str:
        return self._address.url(OWNER_NAME)

    def names(self, folder: str = "") -> Iterator[str]:
        return (name for name, is_complete, _ in self._named(folder) if is_complete)

    def leftovers(self, folder: str = "") -> Iterator[Leftover]:
        found = {
            name: changed for name, is_complete, changed in self._named(folder) if not is_complete
        }
        for name, upload in self._listed(UPLOADS, _below(folder)):
            found[name] = max(to_us(upload["Initiated"]), found.get(name, 0))
        for name, changed_at in found.items():
            yield Leftover(name=name, changed_at=changed_at)

    def remove(self, names: Iterable[str]) -> None:
        """See `Store.remove`. Of a tree, the object that makes it visible is removed first."""
        removed = dict.fromkeys(map(require_name, names))
        self._objects.delete(map(_last, removed))
        for name in filter(is_tree, removed):
            self._objects.delete(key for key, _ in self._objects.listed(OBJECTS, f"{name}/"))
        for key, upload in self._objects.listed(UPLOADS, ""):
            if name_in(key) in removed:
                self._objects.abort(key, upload["UploadId"])

    def _verified_bytes(self, name: str, checksum: str) -> int:
        """Read an object and verify it; how many bytes it holds."""
        found, size_bytes = self._objects.transfers.digest(name)
        if found != checksum:
            raise damaged(self._address.url(name))
        return size_bytes

    def _download_tree(self, stored: Stored, copy: Path) -> None:
        content = self._objects.content(_last(stored.name))
        index = read_index(content, stored, self._address.url(stored.name))
        below = copy / CONTENT_NAME
        for folder in (copy, below, *(below / path for path in index.folders)):
            folder.mkdir()
        (copy / INDEX_NAME).write_bytes(content)
        self._objects.transfers.download(
            (f"{stored.name}/{CONTENT_NAME}/{file.path}", str(below / file.path))
            for file in index.files
        )

    def _named(self, folder: str) -> Iterator[tuple[str, bool, int]]:
        """Each name, whether it is visible, and when one of its objects last changed."""
        objects = self._listed(OBJECTS, _below(folder))
        # Keys come sorted: those of one name are together.
        for name, group in groupby(objects, key=itemgetter(0)):
            last, is_complete, changed_at = self._address.key(_last(name)), False, 0
            for _, each in group:
                is_complete = is_complete or each["Key"] == last
                changed_at = max(changed_at, to_us(each["LastModified"]))
            yield name, is_complete, changed_at

    def _listed(self, listing: tuple[str, str], below: str) -> Iterator[tuple[str, Any]]:
        """What the server says of each object or upload of ours, after its name. Reads by page."""
        for key, each in self._objects.listed(listing, below):
            name = name_in(key)
            if name is not None:
                yield name, each


def _last(name: str) -> str:
    """The object that makes a name visible."""
    return f"{name}/{INDEX_NAME}" if is_tree(name) else name


def _below(folder: str) -> str:
    return f"{folder_of_names(folder)}/" if folder else ""
