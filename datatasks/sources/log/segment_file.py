"""One segment of a log, which a stranger may have written: no value is used unchecked.

Only the wanted columns are decoded, what that takes is known before, and the values of a record
batch are validated before the first of them leaves.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from forebay.datatasks.sources.common.rows.chunks import without_columns
from forebay.datatasks.sources.formats.ipc_metadata import (
    METADATA_ERRORS,
    Frame,
    column_layouts,
    footer,
    is_compressed,
    require_little_endian,
)
from forebay.datatasks.sources.formats.ipc_sizes import StreamLayout, plain_bytes
from forebay.datatasks.sources.formats.unchecked_types import unchecked_problem

# Of a record batch decompressed, of all dictionaries, and of the rows that are cast together.
BATCH_BYTES_MAX = 256 << 20


class SegmentFile:
    """schema: of all columns of a segment. rows: of each record batch."""

    def __init__(self, path: str) -> None:
        """Map the file: a part of a record batch does not bring the rest into memory.

        Raises:
            OSError: when it cannot be opened.
            pyarrow.ArrowInvalid: when it is no Arrow file.
        """
        try:
            with Path(path).open("rb") as stream:
                # Copied where it is changed, and never in the file.
                self._data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
            self._footer = footer(self._data)
            require_little_endian(self._footer.schema)
            # Before Arrow reads the schema: it says what that takes.
            self._layouts = column_layouts(self._footer.schema, self._footer.version)
            self.rows = array("q", (each.header.long(0) for each in self._footer.batches))
        except (*METADATA_ERRORS, ValueError) as error:
            raise pa.ArrowInvalid(f"not an Arrow file: {error}") from error
        self.schema = self._opened([]).schema
        if min(self.rows, default=0) < 0:
            raise pa.ArrowInvalid("a record batch has a negative number of rows")

    def choose(self, columns: Sequence[str]) -> None:
        """Wanted columns, all of which it has once. ArrowInvalid for one that is not to be read."""
        for name in columns:
            if problem := unchecked_problem(self.schema, name):
                raise pa.ArrowInvalid(problem)
        wanted = [self.schema.get_field_index(name) for name in columns]
        self._columns = list(columns)
        try:
            self._layout = StreamLayout(self._layouts, wanted)
            self._layout.empty_others(self._footer.dictionaries)
            self._require("its dictionaries take", self._size(self._footer.dictionaries))
        except METADATA_ERRORS as error:
            raise pa.ArrowInvalid(f"not an Arrow file: {error}") from error
        self._file = self._opened(wanted)

    def parts(self, number: int, start: int, rows_max: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows of a record batch from `start` on, and the number of their first.

        Raises:
            pyarrow.ArrowException: when they are damaged, or take too much.
        """
        batch = self._batch(number)
        for first in range(start, batch.num_rows, rows_max):
            part = batch.slice(first, rows_max)
            self._require(f"{part.num_rows:,} rows of it take", plain_bytes(part))
            yield first, part

    def _batch(self, number: int) -> pa.RecordBatch:
        if not self._columns:
            return without_columns(self.rows[number])
        try:
            batch = self._footer.batches[number]
            taken = self._size([batch]) if is_compressed(batch.header) else 0
        except METADATA_ERRORS as error:
            raise pa.ArrowInvalid(f"record batch {number}: {error}") from error
        self._require(f"decompressed, record batch {number} takes", taken)
        found = self._file.get_batch(number).select(self._columns)
        # Wrong offsets inside of it would otherwise be followed into foreign memory.
        found.validate(full=True)
        return found

    def _opened(self, wanted: list[int]) -> pa.ipc.RecordBatchFileReader:
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        return pa.ipc.open_file(pa.py_buffer(self._data), options=options)

    def _size(self, frames: Iterable[Frame]) -> int:
        return self._layout.size(self._data, frames, BATCH_BYTES_MAX).bytes

    @staticmethod
    def _require(what: str, taken: int) -> None:
        if taken > BATCH_BYTES_MAX:
            raise pa.ArrowInvalid(
                f"{what} {taken:,} bytes, and at most {BATCH_BYTES_MAX:,} are read"
            )
