"""Segments of a `log`: their file names, which readers parse too, and appending whole ones."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from forebay.errors import InfrastructureError
from forebay.system.instants import to_us

__all__ = ["LogWriter"]

SEGMENT_REGEX = r"(?P<base>[0-9]{20})-(?P<rows>[0-9]{8})-(?P<commit>[0-9]{15})\.arrow"
SEGMENT_ROWS_MAX = 10**8 - 1
_SEGMENT = re.compile(SEGMENT_REGEX)
_BATCH_ROWS = 8192
_LOCK = ".writer.lock"


class LogWriter:
    """Appends tables to one partition. Several writers of one partition take turns by a lock."""

    def __init__(self, folder: Path, partition: str | int) -> None:
        self.folder = folder / str(partition)

    def append(self, table: pa.Table, commit_time: datetime) -> Path | None:
        """Write one segment and make it visible; returns its path, or None for no rows.

        Raises:
            ValueError: when `commit_time` is before the newest segment's: its window may be
                planned already.
            InfrastructureError: when the disk does not take it.
        """
        written = self.append_all([(table, commit_time)])
        return written[0] if written else None

    def append_all(self, segments: Iterable[tuple[pa.Table, datetime]]) -> list[Path]:
        """Write many segments as one writer's turn: the folder is listed once, not each time.

        Returns:
            The paths; tables without rows have none.

        Raises:
            ValueError: when a commit time falls; the segments before it are written.
            InfrastructureError: when the disk does not take one.
        """
        written = []
        try:
            with self._locked():
                base, newest = self._tail()
                for table, commit_time in segments:
                    if table.num_rows > SEGMENT_ROWS_MAX:
                        raise ValueError(
                            f"a segment has at most {SEGMENT_ROWS_MAX} rows, not {table.num_rows}"
                        )
                    commit_ms = to_us(commit_time) // 1000
                    if not table.num_rows:
                        continue
                    if commit_ms < newest:
                        raise ValueError(
                            f"{self.folder}: commit times must not fall: {commit_time}"
                        )
                    name = f"{base:020d}-{table.num_rows:08d}-{commit_ms:015d}.arrow"
                    written.append(self._write(table, name))
                    base, newest = base + table.num_rows, commit_ms
        except OSError as error:
            raise InfrastructureError(f"{self.folder}: {error}") from error
        return written

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _tail(self) -> tuple[int, int]:
        """Next offset and newest commit time in milliseconds."""
        names = os.listdir(self.folder)  # noqa: PTH208 - no Path for each of many segments
        last = max((name for name in names if name.endswith(".arrow")), default="")
        found = _SEGMENT.fullmatch(last)
        if found is None:
            return 0, 0
        return int(found["base"]) + int(found["rows"]), int(found["commit"])

    def _write(self, table: pa.Table, name: str) -> Path:
        target = self.folder / name
        temporary = self.folder / f".{name}.{os.getpid()}"
        try:
            with temporary.open("wb") as handle:
                with pa.ipc.new_file(handle, table.schema) as writer:
                    writer.write_table(table, max_chunksize=_BATCH_ROWS)
                handle.flush()
                os.fsync(handle.fileno())
            temporary.rename(target)
        finally:
            temporary.unlink(missing_ok=True)
        return target


def parse_segment(name: str) -> tuple[int, int, int]:
    """Base offset, rows and commit time (milliseconds) of a file's name; ValueError for others."""
    found = _SEGMENT.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is not a log segment")
    return int(found["base"]), int(found["rows"]), int(found["commit"])
