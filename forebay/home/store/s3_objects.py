"""Objects below one S3 address: read whole, listed by page, removed many at once."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from forebay.home.store.s3_client import S3Address, calling, client_of, refused
from forebay.home.store.s3_transfers import S3Transfers

_KEYS_AT_ONCE = 1000  # the most that the protocol takes
# A listing, and what its pages hold.
OBJECTS, UPLOADS = ("list_objects_v2", "Contents"), ("list_multipart_uploads", "Uploads")


class S3Objects:
    """Names are those of keys after the address's prefix."""

    def __init__(self, address: S3Address) -> None:
        self.address = address
        self._opened: tuple[int, Any] | None = None

    @property
    def client(self) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        """The client of this process: a forked child shares no connection with its parent."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), client_of(self.address)
        return self._opened[1]

    @property
    def transfers(self) -> S3Transfers:
        return S3Transfers(self.client, self.address)

    def content(self, name: str) -> bytes:
        """All bytes of an object.

        Raises:
            DataError: when it is missing.
        """
        found = io.BytesIO()
        self.transfers.download([(name, found)])
        return found.getvalue()

    def listed(self, listing: tuple[str, str], below: str) -> Iterator[tuple[str, Any]]:
        """Each name, and what the server says of its object or upload. Reads by page."""
        operation, kind = listing
        prefix = self.address.prefix
        with calling(self.address.url(below), self.address.named):
            for page in self.client.get_paginator(operation).paginate(
                Bucket=self.address.bucket, Prefix=prefix + below
            ):
                for each in page.get(kind, ()):
                    yield each["Key"].removeprefix(prefix), each

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; missing ones count as deleted."""
        names = iter(names)
        while some := list(islice(names, _KEYS_AT_ONCE)):
            keys = [{"Key": self.address.key(name)} for name in some]
            with calling(self.address.url(), self.address.named):
                answer = self.client.delete_objects(
                    Bucket=self.address.bucket, Delete={"Objects": keys, "Quiet": True}
                )
            for error in answer.get("Errors", ()):
                place = self.address.url(error["Key"].removeprefix(self.address.prefix))
                code, reason = error.get("Code", ""), error.get("Message", "")
                raise refused(place, code, reason, self.address.named)

    def abort(self, name: str, upload_id: str) -> None:
        another_was_first = suppress(self.client.exceptions.NoSuchUpload)
        with calling(self.address.url(), self.address.named), another_was_first:
            self.client.abort_multipart_upload(
                Bucket=self.address.bucket, Key=self.address.key(name), UploadId=upload_id
            )
