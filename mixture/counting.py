"""CountingLearner: learns nothing and counts everything, with NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from forebay.config.specs.feeds import Phase
from forebay.errors import ConfigError
from forebay.mixture.label_guard import GuardState
from forebay.mixture.left_out import LeftOut
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.row_sums import RowSums
from forebay.mixture.score_columns import ScoreColumn
from forebay.system.message import Message

COUNTS = "counts.json"


class Counts(Message):
    steps: int
    seen: list[RowSums]


class CountingLearner:
    """The learner of `kind: count`: a dry run whose row sums are as exact as a model's."""

    paradigms: Sequence[str] = ()
    columns: Sequence[ScoreColumn] = ()

    def __init__(self, source_count: int) -> None:
        self._steps = 0
        self._sums = np.zeros((source_count, 3), np.int64)

    def set_phase(self, phase: Phase) -> None:
        del phase

    def score(self, minibatch: Minibatch) -> npt.NDArray[np.float32]:
        return np.empty((len(minibatch), 0), np.float32)

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        """Add the minibatch's row ids to their sources' sums; int64 arithmetic wraps."""
        ids = minibatch.row_ids
        parts = np.stack([np.ones_like(ids), ids, ids * ids], axis=1)
        np.add.at(self._sums, minibatch.sources, parts)
        self._steps += 1
        return {}

    def seen(self) -> list[RowSums]:
        return [
            RowSums(rows=rows, sum=total, sum_of_squares=squares)
            for rows, total, squares in self._sums.tolist()
        ]

    def learnt(self) -> dict[str, list[int]]:
        return {}

    def left_out(self) -> dict[str, LeftOut]:
        return {}

    def held(self) -> npt.NDArray[np.bool_] | None:
        return None

    def guards(self) -> dict[str, list[GuardState | None]]:
        return {}

    def save(self, directory: Path) -> None:
        counts = Counts(steps=self._steps, seen=self.seen())
        (directory / COUNTS).write_text(counts.model_dump_json(indent=1))

    def load(self, directory: Path) -> None:
        """Read counts.json.

        Raises:
            ConfigError: when it counts another number of sources.
        """
        counts = Counts.model_validate_json((directory / COUNTS).read_text())
        if len(counts.seen) != len(self._sums):
            raise ConfigError(
                f"the checkpoint counts {len(counts.seen)} sources, but the pipeline has"
                f" {len(self._sums)}: start another line, or forget the pipeline's windows"
            )
        rows = [(sums.rows, sums.sum, sums.sum_of_squares) for sums in counts.seen]
        self._sums = np.array(rows, np.int64).reshape(self._sums.shape)
        self._steps = counts.steps

    def export(self, directory: Path, variant: str | None = None) -> None:
        """Write the counts: a counting model serves nothing, but they can be inspected."""
        del variant
        self.save(directory)
