"""The contract of a learner: score, learn, save, load, export, and report what it has seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from forebay.config.specs.feeds import Phase
from forebay.mixture.label_guard import GuardState
from forebay.mixture.left_out import LeftOut
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.row_sums import RowSums
from forebay.mixture.score_columns import ScoreColumn


class Learner(Protocol):
    """Everything that one trainer process trains: all paradigms of a pipeline, side by side."""

    @property
    def paradigms(self) -> Sequence[str]:
        """Names of the variants in the order of `columns`; the serving one first. May be empty."""

    @property
    def columns(self) -> Sequence[ScoreColumn]:
        """What `score` holds: each variant of the first seed, its towers, then further seeds.

        With several labels, all columns of the first one come first, then all of the next.
        """

    def set_phase(self, phase: Phase) -> None:
        """Set which phase the next minibatches belong to."""

    def score(self, minibatch: Minibatch) -> npt.NDArray[np.float32]:
        """Probabilities float32[N, columns] as the models are now. Changes nothing."""

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        """One step: each paradigm that takes this feed is updated; so are the row sums.

        Returns:
            The loss of each model that was trained on rows of the minibatch, by the name of its
            score column.

        Raises:
            TrainingError: for a loss that is not finite.
        """

    def seen(self) -> list[RowSums]:
        """Row sums from the model's own variables, one per source index."""

    def learnt(self) -> dict[str, list[int]]:
        """Rows that each paradigm was trained on, by source index; also from its own variables.

        A step that no paradigm takes part in has seen its rows, but none was trained on them.
        """

    def left_out(self) -> dict[str, LeftOut]:
        """Stream rows that each corrected or guarded variant was not trained on."""

    def held(self) -> npt.NDArray[np.bool_] | None:
        """Rows of the last minibatch that guards of the first seed held: bool[N, labels].

        None if there is no guard, or before the first minibatch.
        """

    def guards(self) -> dict[str, list[GuardState | None]]:
        """The state of each guarded variant's guard, by source index; None where it saw no rows."""

    def save(self, directory: Path) -> None:
        """Write model, optimiser and row sums into an existing, empty folder."""

    def load(self, directory: Path) -> None:
        """Restore what `save` wrote."""

    def export(self, directory: Path, variant: str | None = None) -> None:
        """Write what serves: a SavedModel that takes raw features. Counting writes its counts.

        variant: one of `paradigms`; None for the first.
        """
