"""Lists what is in a bucket below a prefix, names and what is half written, and removes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import Any, NamedTuple

from forebay.home.store.base import Leftover, is_tree, place_of
from forebay.home.store.s3_client import S3Address, calling, refused
from forebay.home.store.trees import INDEX_NAME
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
        """Nothing is requested yet."""
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
