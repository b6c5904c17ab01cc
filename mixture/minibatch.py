"""Minibatch: the arrays of one step, all from batch sources or all from stream sources."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forebay.config.specs.datasets import Feed


@dataclass(frozen=True)
class LabelRows:
    """One further label of N rows; like the arrays of the same names in `Minibatch`.

    labels: NaN where a row lacks it, or had it too late. waits: None if they are those of the first
    label, as for all rows of a stream.
    """

    labels: npt.NDArray[np.float32]
    known: npt.NDArray[np.float32] | None = None
    waits: npt.NDArray[np.float32] | None = None
    held: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Minibatch:
    """N rows of one feed, encoded. Column order is that of `FeatureLayout`.

    row_ids, event_ids: int64[N]. sources: int32[N], index in `PipelineSpec.uses`.
    labels: float32[N] of 0 or 1; NaN where only a further label is known.
    dense: float32[N, D]. ids: int64[N, C].
    lists: for each list feature (row_splits int64[N+1], values int64[M]).
    event_times: int64[N], when each event happened, in microseconds since 1970 UTC; INT_MIN where
    a row lacks it; None if no source has it.
    waits: float32[N], seconds from the event to the publication of its stream row; for a batch row,
    of its copy in the stream. NaN where unknown. None if nothing needs it.
    known: float32[N], of batch rows: 1 where the stream's copy already had the complete label, 0
    where not, NaN where unknown. None if nothing needs it.
    held: bool[N], of stream rows trained on: which of them the guard held. None if there is no
    guard, or before the rows are trained on.
    further: labels after the first, each with its own `known` and `held`.
    """

    feed: Feed
    row_ids: npt.NDArray[np.int64]
    event_ids: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int32]
    labels: npt.NDArray[np.float32]
    dense: npt.NDArray[np.float32]
    ids: npt.NDArray[np.int64]
    lists: tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], ...] = ()
    event_times: npt.NDArray[np.int64] | None = None
    waits: npt.NDArray[np.float32] | None = None
    known: npt.NDArray[np.float32] | None = None
    held: npt.NDArray[np.bool_] | None = None
    further: tuple[LabelRows, ...] = ()

    def of_label(self, place: int) -> Minibatch:
        """The rows with one of their labels in first place; 0 is the first."""
        if place == 0:
            return self
        one = self.further[place - 1]
        waits = self.waits if one.waits is None else one.waits
        return replace(self, labels=one.labels, known=one.known, waits=waits, held=one.held)

    def after_guards(self, held: npt.NDArray[np.bool_] | None) -> Minibatch:
        """The rows with what their guards held, bool[N, labels]; None if there is no guard."""
        if held is None:
            return self
        further = tuple(
            replace(one, held=own) for one, own in zip(self.further, held.T[1:], strict=True)
        )
        return replace(self, held=held[:, 0], further=further)

    def __len__(self) -> int:
        return len(self.row_ids)
