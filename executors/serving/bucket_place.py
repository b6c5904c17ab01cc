"""A serving path in a bucket. Objects appear one by one: `saved_model.pb` last, and goes first."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

from forebay.errors import DataError
from forebay.executors.serving.folder_place import MODEL, integer_of
from forebay.home.store.s3_client import s3_address
from forebay.home.store.s3_objects import OBJECTS, UPLOADS, S3Objects
from forebay.home.store.trees import list_tree


class BucketPlace:
    """See `FolderPlace`."""

    def __init__(self, address: str) -> None:
        self._objects = S3Objects(s3_address(address, "job.publish.serving"))
        self.url = self._objects.address.url().rstrip("/")

    def read(self, name: str) -> bytes | None:
        with suppress(DataError):  # there is no such object
            return self._objects.content(name)
        return None

    def write(self, name: str, content: bytes) -> None:
        self._objects.transfers.upload([(name, io.BytesIO(content))])

    def integers(self) -> dict[int, bool]:
        found: dict[int, bool] = {}
        for key, _ in self._objects.listed(OBJECTS, ""):
            first, _, below = key.partition("/")
            integer = integer_of(first)
            if integer is not None and below:
                found[integer] = found.get(integer, False) or below == MODEL
        return found

    def put(self, integer: int, source: Path) -> None:
        for key, upload in self._objects.listed(UPLOADS, ""):  # of a process that was killed
            self._objects.abort(key, upload["UploadId"])
        others = [name for name in list_tree(source).files if name != MODEL]
        for names in (others, [MODEL]):
            files = ((f"{integer}/{name}", str(source / name)) for name in names)
            self._objects.transfers.upload(files)

    def remove(self, integer: int) -> None:
        self._objects.delete([f"{integer}/{MODEL}"])
        self._objects.delete(key for key, _ in self._objects.listed(OBJECTS, f"{integer}/"))
