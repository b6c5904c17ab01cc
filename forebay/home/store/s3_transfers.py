"""Uploads and downloads, several at once; a large file is sent in parts, which appear together."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from contextlib import closing, suppress
from typing import Any
from weakref import WeakSet

from boto3.s3.transfer import TransferConfig, create_transfer_manager

from forebay.home.store.s3_client import CUT_OFF, REQUESTS_AT_ONCE, S3Address, calling
from forebay.system.liveness import current_activity, progressed

# A name, and the path or the buffer of its content.
Files = Iterable[tuple[str, str | io.BytesIO]]
_PART_BYTES = 16 << 20
_READ_BYTES = 1 << 20
# Attempts at a download whose bytes stop coming; each one retries its request as usual.
_DOWNLOADS = 2


class _Progress:
    """Counts the bytes that boto3's threads transfer as progress of the thread that waits."""

    def __init__(self) -> None:
        self._activity = current_activity()

    def on_progress(self, **_: object) -> None:
        if self._activity is not None:
            self._activity.marks += 1


class _Closing:
    """The client for one call of ours, which closes the objects that are still open when it ends.

    boto3 drops the body of an object that it no longer wants, for example when the disk is full.
    The connection would stay open until the garbage collector finds it.
    """

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - boto3's
        self._client = client
        self._bodies: WeakSet[Any] = WeakSet()

    def get_object(self, **request: object) -> Any:  # noqa: ANN401 - boto3's
        answer = self._client.get_object(**request)
        self._bodies.add(answer["Body"])
        return answer

    def close(self) -> None:
        for body in self._bodies:
            body.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - boto3's
        return getattr(self._client, name)


class S3Transfers:
    """Transfers of one client. An error cancels what is not done yet."""

    def __init__(self, client: Any, address: S3Address) -> None:  # noqa: ANN401 - boto3's
        self._client = client
        self._address = address

    def upload(self, files: Files) -> None:
        """Store objects; on return all of them are durable."""
        self._transfer("upload", files)

    def download(self, files: Files) -> None:
        """Fetch objects.

        Raises:
            DataError: when one of them is missing.
        """
        self._transfer("download", files)

    def digest(self, name: str) -> tuple[str, int]:
        """SHA-256 and size of an object, which is read to its end and not kept.

        Raises:
            DataError: when it is missing.
        """
        with calling(self._address.url(name), self._address.named):
            for _ in range(_DOWNLOADS - 1):
                with suppress(*CUT_OFF):
                    return self._read(name)
            return self._read(name)

    def _read(self, name: str) -> tuple[str, int]:
        found, size_bytes = hashlib.sha256(), 0
        key = self._address.key(name)
        answer = self._client.get_object(Bucket=self._address.bucket, Key=key)
        with closing(answer["Body"]) as body:
            for content in body.iter_chunks(_READ_BYTES):
                found.update(content)
                size_bytes += len(content)
                progressed()
        return found.hexdigest(), size_bytes

    def _transfer(self, operation: str, files: Files) -> None:
        config = TransferConfig(
            multipart_threshold=2 * _PART_BYTES,
            multipart_chunksize=_PART_BYTES,
            max_concurrency=REQUESTS_AT_ONCE,
            num_download_attempts=_DOWNLOADS,
        )
        place = {"bucket": self._address.bucket, "subscribers": [_Progress()]}
        with (
            calling(self._address.url(), self._address.named),
            closing(_Closing(self._client)) as client,
            create_transfer_manager(client, config) as manager,
        ):
            start = getattr(manager, operation)
            started = [
                (name, start(key=self._address.key(name), fileobj=content, **place))
                for name, content in files
            ]
            for name, future in started:
                with calling(self._address.url(name), self._address.named):
                    future.result()
