"""Kind `memory`: tables of this process, for tests of whatever reads sources."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import (
    Describes,
    Description,
    Finding,
    Readiness,
)
from forebay.datatasks.sources.common.files.bundles import Ints
from forebay.datatasks.sources.common.rows.numbered import NumberedSource
from forebay.datatasks.sources.common.values.casting import (
    Fitted,
    column_findings,
    column_problem,
    event_times,
)
from forebay.datatasks.sources.common.values.times import UNKNOWN, Times
from forebay.datatasks.sources.memory.kind import MemoryKind
from forebay.errors import DataError
from forebay.system.instants import shown_instant

__all__ = ["MEMORY"]

MEMORY: dict[str, pa.Table] = {}


class MemorySource(MemoryKind, NumberedSource, Describes):
    """One table of MEMORY, cut by event time. Row ids: path is the table's key, row its number."""

    options: MemoryKind.Options

    @property
    def table(self) -> str:
        return self.options.table

    def describe(self) -> Description:
        if self.table not in MEMORY:
            return Description({}, empty_reason=f"MEMORY has no table {self.table!r}")
        stored = MEMORY[self.table]
        times = self._times(stored)
        newest = shown_instant(int(times.max())) if len(times) else None
        columns = {each.name: str(each.type) for each in stored.schema}
        return Description(columns, [self.table], newest)

    def findings(self) -> list[Finding]:
        if self.table not in MEMORY:
            return super().findings()
        schema = MEMORY[self.table].schema
        return list(column_findings(schema, self.spec.columns, f"table {self.table!r}"))

    def readiness(self, span: Interval) -> Readiness:  # noqa: ARG002 - always complete
        return Readiness(ready=True)

    def times(self, first_us: int, end_us: int) -> tuple[Ints, Times]:  # noqa: ARG002 - of all
        times = self._times(self._stored())
        return np.arange(len(times)), times

    def rows(self, numbers: Ints, columns: Sequence[str]) -> Fitted:
        found = self._stored().select(list(columns)).slice(int(numbers[0]), len(numbers))
        return Fitted(found.combine_chunks().to_batches()[0])

    def content(self, numbers: Ints) -> bytes:
        return repr(self._stored().take(pa.array(numbers)).to_pylist()).encode()

    def _stored(self) -> pa.Table:
        if self.table not in MEMORY:
            raise DataError(f"source {self.spec.name!r}: MEMORY has no table {self.table!r}")
        table = MEMORY[self.table]
        for name, declared in self.spec.columns.items():
            problem = column_problem(table.schema, name, declared)
            if problem:
                raise DataError(f"table {self.table!r}: {problem}")
        return table

    def _times(self, table: pa.Table) -> Times:
        name = str(self.spec.event_time)
        batches = table.select([name]).combine_chunks().to_batches()
        if not batches:
            return np.zeros(0, np.int64)
        times = event_times(batches[0], name)
        if (times == UNKNOWN).any():
            row = int(np.flatnonzero(times == UNKNOWN)[0])
            raise DataError(f"table {self.table!r}, row {row}: no time in column {name!r}")
        return times
