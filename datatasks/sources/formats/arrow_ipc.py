"""Format `arrow-ipc`: each message is one Arrow IPC stream, a micro-batch of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import ClassVar

import numpy as np
import pyarrow as pa

from forebay.datatasks.sources.common.casting import column_problem, fit
from forebay.datatasks.sources.common.chunks import without_columns
from forebay.datatasks.sources.formats.decoder import REASON_MAX, Decoded, Decoder


class ArrowDecoder(Decoder):
    """Reads IPC streams; messages may differ in their columns as long as the declared ones fit."""

    one_row: ClassVar[bool] = False

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """See `Decoder.decode`."""
        bad: dict[int, str] = {}
        tables: dict[int, pa.Table] = {}
        for number, value in enumerate(values):
            found = self._read(value)
            if isinstance(found, str):
                bad[number] = found
            else:
                tables[number] = found
        counts = np.array([table.num_rows for table in tables.values()], np.int64)
        starts = np.cumsum(counts) - counts
        pieces, bad_rows = self._fitted(tables.values()) if self.columns else ([], {})
        return Decoded(
            batch=_joined(pieces, self.schema) if self.columns else without_columns(counts.sum()),
            messages=np.repeat(np.array(list(tables), np.int64), counts),
            rows=np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts, counts),
            bad_messages=bad,
            bad_rows=bad_rows,
        )

    def described(self, value: bytes) -> dict[str, str]:
        """See `Decoder.described`."""
        try:
            with pa.ipc.open_stream(pa.py_buffer(value)) as reader:
                return {each.name: str(each.type) for each in reader.schema}
        except (pa.ArrowException, OSError, ValueError):
            return {}

    def _read(self, value: bytes | None) -> pa.Table | str:
        """The columns of one message as stored, or why they cannot be had."""
        if value is None:
            return "the message has no value"
        try:
            with pa.ipc.open_stream(pa.py_buffer(value)) as reader:
                for name in self.columns:
                    if problem := column_problem(reader.schema, name, self.declared[name]):
                        return problem
                table = reader.read_all()
            table = table.select(self.columns) if self.columns else table
            # Wrong offsets inside the message would otherwise be followed into foreign memory.
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            return f"no Arrow IPC stream: {error}"[:REASON_MAX]
        return table.replace_schema_metadata(None)

    def _fitted(self, tables: Iterable[pa.Table]) -> tuple[list[pa.RecordBatch], dict[int, str]]:
        """Cast neighbours of one schema together: casting costs per call, not per row."""
        pieces: list[pa.RecordBatch] = []
        bad: dict[int, str] = {}
        first = 0
        for _, group in groupby(tables, key=lambda table: table.schema):
            joined = pa.concat_tables(list(group)).unify_dictionaries().combine_chunks()
            for batch in joined.to_batches():
                fitted = fit(batch, self.columns, self.declared)
                bad.update({first + row: reason for row, reason in fitted.bad.items()})
                pieces.append(fitted.batch)
                first += batch.num_rows
        return pieces, bad


def _joined(pieces: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return pa.concat_batches(pieces)
