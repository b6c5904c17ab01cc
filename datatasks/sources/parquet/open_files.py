"""Open Parquet files, and which of them stays open: one for each reader."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.datatasks.sources.common.files.listing import arrow_file
from forebay.datatasks.sources.common.row_groups.states import KNOWN
from forebay.datatasks.sources.parquet.footer_process import group_bounds
from forebay.datatasks.sources.parquet.footers import Opened, group_ends, open_parquet, read_footer


@dataclass(frozen=True)
class OpenFile:
    """An open file, the digest of its footer, and the row number after each of its row groups."""

    file: pq.ParquetFile
    digest: str
    ends: npt.NDArray[np.int64]

    @property
    def num_rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def group_of(self, row: int) -> int:
        return int(np.searchsorted(self.ends, row, side="right"))

    def bounds_of(self, group: int, event_time: str) -> tuple[int, int] | None:
        """The times [low, high) in microseconds that planning took a row group to have."""
        metadata = self.file.metadata
        groups = [metadata.row_group(group)]
        found = group_bounds(metadata, self.file.schema_arrow, event_time, groups)
        if found is None or found[0][2] != KNOWN:
            return None
        low, high, _ = found[0]
        return low, high + 1

    def groups(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Row groups that have rows of [first, end), with their first row and their end row."""
        for group in range(self.group_of(first), len(self.ends)):
            low, high = int(self.ends[group - 1]) if group else 0, int(self.ends[group])
            if low >= end:
                return
            yield group, low, high


class LastFile:
    """Keeps the file open that was wanted last: a task may have thousands of ranges of it.

    And tasks of consecutive hours are of one file: to open it again for each of them, and to parse
    its footer, would cost as much as to decode thousands of rows.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._key = ("", "")
        self._found: OpenFile | None = None
        self._stack = ExitStack()

    def open(self, path: str, version: str) -> OpenFile:
        """The file, of which `version` was planned; one of READ_ERRORS when it cannot be opened."""
        if self._found is None or self._key != (path, version):
            self.close()
            self._found, self._key = self._new(path), (path, version)
        return self._found

    @property
    def may_stay(self) -> bool:
        """Whether another task may read on in it: of a file without a version nobody knows."""
        return self._found is not None and bool(self._key[1])

    def close(self) -> None:
        self._found = None
        self._stack.close()

    def _new(self, path: str) -> OpenFile:
        handle = arrow_file(self._stack.enter_context(self._opened(path)))
        self._stack.callback(handle.close)
        metadata, digest = read_footer(handle)
        file = open_parquet(handle, metadata)
        ends = group_ends(file.metadata)
        if (np.diff(ends, prepend=0) < 0).any():
            raise pa.ArrowInvalid("a row group has a negative number of rows")
        if file.metadata.num_rows != ends[-1:].sum():
            raise pa.ArrowInvalid("its row groups do not have as many rows as its footer says")
        return OpenFile(self._stack.enter_context(file), digest, ends)


class FileKeeper:
    """Lends a `LastFile` to one task after the other; one that is lent is nobody else's."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._kept: LastFile | None = None
        self._lock = threading.Lock()

    @contextmanager
    def lent(self) -> Iterator[LastFile]:
        """For one task. What a task that was left, or has failed, had open is closed."""
        files = self._take() or LastFile(self._opened)
        try:
            yield files
        except BaseException:
            files.close()
            raise
        with self._lock:
            stays = self._kept is None and files.may_stay
            if stays:
                self._kept = files
        if not stays:
            files.close()

    def close(self) -> None:
        if kept := self._take():
            kept.close()

    def _take(self) -> LastFile | None:
        with self._lock:
            kept, self._kept = self._kept, None
        return kept
