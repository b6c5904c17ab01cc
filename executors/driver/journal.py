"""The driver's journal: append-only lines, each with a checksum, durable when `append` returns.

A process that died while writing leaves an incomplete last line; that line never counted, and it is
cut off when the journal is opened again.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from forebay.errors import InfrastructureError
from forebay.system.files.durable import make_folder, sync
from forebay.system.files.locks import FileLock

LOCK_SECONDS = 5.0
Record = dict[str, Any]


class Journal:
    """One file, one writer (a lock keeps a second one out). `records`: those found on opening."""

    def __init__(self, path: Path) -> None:
        """Read what is there and cut off a torn tail.

        Raises:
            InfrastructureError: when another process writes it, or an earlier record is damaged.
        """
        make_folder(path.parent)
        self._path = path
        self._lock = FileLock(path.with_suffix(".lock"))
        if not self._lock.acquire(LOCK_SECONDS):
            raise InfrastructureError(f"another driver writes {path}")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.records, good = _parse(path, path.read_bytes())
        os.ftruncate(self._descriptor, good)
        self._size = good
        os.fsync(self._descriptor)
        sync(path.parent)

    def append(self, kind: str, **facts: Any) -> None:
        """Add a record; it is on disk on return.

        Raises:
            InfrastructureError: when the disk does not take it.
        """
        text = json.dumps({"kind": kind, **facts}, separators=(",", ":"))
        line = f"{zlib.crc32(text.encode()):08x} {text}\n".encode()
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):
                raise OSError(f"{written} of {len(line)} bytes were written")
            os.fdatasync(self._descriptor)
        except OSError as error:
            # Half a record must not precede later ones.
            os.ftruncate(self._descriptor, self._size)
            raise InfrastructureError(
                f"the driver's journal cannot be written: {self._path}: {error}"
            ) from error
        self._size += len(line)

    def close(self) -> None:
        os.close(self._descriptor)
        self._lock.release()


def _parse(path: Path, content: bytes) -> tuple[list[Record], int]:
    """All good records, and how many bytes they take."""
    records: list[Record] = []
    good = 0
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines):
        record = _record(line)
        if record is None:
            if number < len(lines) - 1:
                raise InfrastructureError(f"{path}:{number + 1} is damaged: submit a new job")
            break
        records.append(record)
        good += len(line)
    return records, good


def _record(line: bytes) -> Record | None:
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != f"{zlib.crc32(text):08x}".encode():
        return None
    record = json.loads(text)
    return record if isinstance(record, dict) else None
