"""GateEvidence: figures of a line's newest windows, as one link hands them to the next one's gate.

It is a file of the link, some kilobytes a window, and a cache: everything in it can be computed
again from the score segments of the windows that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
from pydantic import Field

from forebay.executors.judging.evidence.window_figures import WindowFigures
from forebay.executors.model_line.link import Parent
from forebay.mixture.metrics.auc import AucEstimate
from forebay.mixture.metrics.losses import LossEstimate
from forebay.system.message import Message

EVIDENCE_FILE = "evidence.json"
_US = timedelta(microseconds=1)


class AucNumbers(Message):
    """An `AucEstimate`, to the last bit."""

    values: list[float]
    covariance: list[list[float]]
    positives: int
    negatives: int

    @classmethod
    def of(cls, auc: AucEstimate) -> AucNumbers:
        """Its numbers; the pairs follow from them."""
        return cls(
            values=auc.values.tolist(),
            covariance=auc.covariance.tolist(),
            positives=auc.positives,
            negatives=auc.negatives,
        )

    def estimate(self) -> AucEstimate:
        """What they were taken of."""
        values, covariance = np.array(self.values), np.array(self.covariance)
        pairs = self.positives * self.negatives
        return AucEstimate(values, covariance, self.positives, self.negatives, pairs)


class LossNumbers(Message):
    """A `LossEstimate`, to the last bit."""

    values: list[float]
    covariance: list[list[float]]
    rows: int
    entropy: float

    @classmethod
    def of(cls, losses: LossEstimate) -> LossNumbers:
        """Its numbers."""
        return cls(
            values=losses.values.tolist(),
            covariance=losses.covariance.tolist(),
            rows=losses.rows,
            entropy=losses.entropy,
        )

    def estimate(self) -> LossEstimate:
        """What they were taken of."""
        values, covariance = np.array(self.values), np.array(self.covariance)
        return LossEstimate(values, covariance, self.rows, self.entropy)


class KnownWindow(Message):
    """A trained window: which judged rows it brought, and figures of its own events.

    start, end: microseconds since 1970 UTC, the end excluded. brought: windows up to this one to
    whose events its rows belong. latest: the latest time of a row; windows that began until then
    may have rows of it too. columns: names of the scores; none while nothing is judged.
    """

    link: Parent
    start: int
    end: int
    brought: list[str] = Field(default_factory=list)
    latest: int | None = None
    columns: list[str] = Field(default_factory=list)
    auc: AucNumbers | None = None
    losses: LossNumbers | None = None

    def figures(self, *, all_here: bool) -> WindowFigures:
        """What the gate decides by."""
        return WindowFigures(
            window=self.link.window,
            columns=tuple(self.columns),
            all_here=all_here,
            auc=None if self.auc is None else self.auc.estimate(),
            losses=None if self.losses is None else self.losses.estimate(),
        )


class GateEvidence(Message):
    """Known windows of a line, in order and without a gap.

    horizon: how many windows after its own one rows of an event were taken from.
    label: of which rows and scores were taken; empty for the only one, or the first of several.
    """

    horizon: int
    label: str = ""
    windows: list[KnownWindow]

    def figures(self, label_delay: timedelta) -> list[WindowFigures]:
        """Of each window. label_delay: after which every complete label has come."""
        trained_to = self.windows[-1].end if self.windows else 0
        delay = label_delay // _US
        return [one.figures(all_here=trained_to >= one.end + delay) for one in self.windows]

    def of_links(self, links: Sequence[Parent], horizon: int, label: str = "") -> list[KnownWindow]:
        """What is known of the first of these links: none where others were looked at then."""
        if (self.horizon, self.label) != (horizon, label):
            return []
        names = [one.link for one in self.windows]
        known = links[: links.index(names[-1]) + 1] if names and names[-1] in links else []
        return self.windows[-len(known) :] if known and names[-len(known) :] == known else []
