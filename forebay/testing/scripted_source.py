"""A source whose rows and troubles a test writes down, for tests of whoever plans and reads.

    SCRIPTS["clicks"] = [batch, Pause(0.1), batch, Abort(OSError("away")), batch, Eof(), batch]

Open it with kind `memory` and ScriptedSource in the place of MemorySource, or as an object.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from forebay.datatasks.sources.common.files.bundles import Ints
from forebay.datatasks.sources.common.rows.numbered import NumberedSource
from forebay.datatasks.sources.common.values.casting import Fitted
from forebay.datatasks.sources.common.values.times import Times, times_of
from forebay.datatasks.sources.memory.kind import MemoryKind

__all__ = ["SCRIPTS", "Abort", "Eof", "Pause", "ScriptedSource"]


@dataclass(frozen=True)
class Abort:
    """Reading on fails, once."""

    error: Exception


@dataclass(frozen=True)
class Pause:
    """Nothing comes for so long, once."""

    seconds: float


@dataclass(frozen=True)
class Eof:
    """What was planned after it is gone."""


Step: TypeAlias = pa.RecordBatch | Abort | Pause | Eof
SCRIPTS: dict[str, list[Step]] = {}


class ScriptedSource(MemoryKind, NumberedSource):
    """One script of SCRIPTS, cut by event time. It does not say what is stored."""

    options: MemoryKind.Options

    @property
    def table(self) -> str:
        return self.options.table

    def times(self, first_us: int, end_us: int) -> tuple[Ints, Times]:  # noqa: ARG002 - of all
        found = [(at, step) for at, step in self._placed() if isinstance(step, pa.RecordBatch)]
        none = np.zeros(0, np.int64)
        numbers = [np.arange(at, at + step.num_rows) for at, step in found]
        times = [times_of(step.column(str(self.spec.event_time))) for _, step in found]
        return np.concatenate([none, *numbers]), np.concatenate([none, *times])

    def rows(self, numbers: Ints, columns: Sequence[str]) -> Fitted:
        first = int(numbers[0])
        for index, (at, step) in enumerate(list(self._placed())):
            if isinstance(step, Eof):
                return Fitted(pa.RecordBatch.from_pydict({name: [] for name in columns}))
            if isinstance(step, pa.RecordBatch):
                if first < at + step.num_rows:
                    return Fitted(step.slice(first - at, len(numbers)).select(list(columns)))
                continue
            SCRIPTS[self.table][index] = Pause(0.0)
            if isinstance(step, Abort):
                raise step.error
            time.sleep(step.seconds)
        raise AssertionError(f"row {first} is not in the script {self.table!r}")

    def _placed(self) -> Iterator[tuple[int, Step]]:
        """Each step and the number of its first row: between two there is one without a row."""
        at = 0
        for step in SCRIPTS[self.table]:
            yield at, step
            at += 1 + (step.num_rows if isinstance(step, pa.RecordBatch) else 0)
