"""Kind `memory`: tables of this process, for tests of whatever reads sources."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from forebay.config.specs.sources import ColumnType
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import (
    Description,
    Finding,
    Readiness,
    Scan,
    Source,
)
from forebay.datatasks.sources.common.files.bundles import to_tasks
from forebay.datatasks.sources.common.rows.chunks import Stored, empty_chunk, joined, to_chunk
from forebay.datatasks.sources.common.rows.numbered import numbered_ranges, slices
from forebay.datatasks.sources.common.values.casting import column_findings, column_problem, fit
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.datatasks.sources.common.values.times import (
    UNKNOWN,
    Spans,
    Times,
    hours_within,
    times_of,
)
from forebay.datatasks.sources.memory.kind import MemoryKind
from forebay.datatasks.tasks import Chunk, DataTask, Position
from forebay.errors import DataError
from forebay.system.instants import shown_instant, to_us

__all__ = ["MEMORY"]

MEMORY: dict[str, pa.Table] = {}


class MemorySource(MemoryKind, Source):
    """One table of MEMORY, cut by event time. Row ids: path is the table's key, row its number."""

    options: MemoryKind.Options

    @property
    def key(self) -> str:
        return self.options.table

    def describe(self) -> Description:
        if self.key not in MEMORY:
            return Description({}, empty_reason=f"MEMORY has no table {self.key!r}")
        table = MEMORY[self.key]
        times = self._times(table)
        newest = shown_instant(int(times.max())) if len(times) else None
        return Description({each.name: str(each.type) for each in table.schema}, [self.key], newest)

    def findings(self) -> list[Finding]:
        if self.key not in MEMORY:
            reason = self.describe().empty_reason
            return [Finding(("options", "table"), "nothing-matched", reason)]
        schema = MEMORY[self.key].schema
        return list(column_findings(schema, self.spec.columns, f"table {self.key!r}"))

    def readiness(self, span: Interval) -> Readiness:  # noqa: ARG002 - always complete
        return Readiness(ready=True)

    def scan(self, spans: Sequence[Interval]) -> Scan:
        table = self._table()
        times = self._times(table)
        bounds = Spans(spans)
        found = bounds.index(times)
        ranges = numbered_ranges(np.arange(len(times)), times, bounds)
        texts = [self._fingerprint(table, np.flatnonzero(found == n)) for n in range(len(spans))]
        return Scan(to_tasks(ranges, pa.array([self.key])), texts, 1)

    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        end = Position(len(task.ranges), 0)
        last = empty_chunk(columns, self.spec.columns, end)
        return joined(self._chunks(task, position, columns, chunk_rows), chunk_rows, last)

    def _chunks(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        table = self._table()
        times = self._times(table)
        for part, rows, end in slices(task, position, chunk_rows):
            stored = Stored(
                batch=table.slice(rows[0], len(rows)).combine_chunks().to_batches()[0],
                part=part,
                rows=rows,
                row_ids=row_ids(task.ranges[part].path, rows),
                hours=hours_within(times[rows], to_us(task.data_from), to_us(task.data_to)),
                end=end,
                locate=lambda row: {"table": self.key, "row": row},
                bad={},
                times=times[rows],
            )
            yield to_chunk(stored, columns, self.spec.columns, self.spec.bad_rows)

    def _table(self) -> pa.Table:
        if self.key not in MEMORY:
            raise DataError(f"source {self.spec.name!r}: MEMORY has no table {self.key!r}")
        table = MEMORY[self.key]
        for name, declared in self.spec.columns.items():
            problem = column_problem(table.schema, name, declared)
            if problem:
                raise DataError(f"table {self.key!r}: {problem}")
        return table

    def _times(self, table: pa.Table) -> Times:
        name = str(self.spec.event_time)
        batches = table.select([name]).combine_chunks().to_batches()
        if not batches:
            return np.zeros(0, np.int64)
        fitted = fit(batches[0], [name], {name: ColumnType.TIMESTAMP})
        times = times_of(fitted.batch.column(0))
        if (times == UNKNOWN).any():
            row = int(np.flatnonzero(times == UNKNOWN)[0])
            raise DataError(f"table {self.key!r}, row {row}: no time in column {name!r}")
        return times

    @staticmethod
    def _fingerprint(table: pa.Table, rows: Times) -> str:
        digest = hashlib.sha256(rows.tobytes())
        digest.update(repr(table.take(pa.array(rows)).to_pylist()).encode())
        return digest.hexdigest()[:32]
