"""GateEvidence: figures of a line's newest windows, as one link passes them to the next gate.

It is a file of the link, a few kilobytes a window, and a cache: everything in it can be recomputed
from the score segments of the windows that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import numpy as np
from pydantic import Field

from forebay.executors.model_line.link import Parent
from forebay.mixture.metrics.auc import AucEstimate
from forebay.mixture.metrics.losses import LossEstimate, entropy_of
from forebay.mixture.metrics.seeds import Floats
from forebay.system.message import Message


@dataclass(frozen=True)
class WindowFigures:
    """Figures of the judged rows whose events happened in a window.

    columns: names of the C scores. all_here: whether every window that brings complete labels is
    trained. auc, losses: of all columns; None with one class only. positives: among the judged
    rows, or less for an old window. expected: float64[C], positives that each column expected.
    """

    window: str
    columns: tuple[str, ...]
    all_here: bool
    auc: AucEstimate | None
    losses: LossEstimate | None
    positives: float
    expected: Floats


AnyFigures = TypeVar("AnyFigures", bound=WindowFigures)


def counted_windows(windows: Iterable[AnyFigures]) -> list[AnyFigures]:
    """Windows with all labels and both classes, scored by the same columns as the last of them."""
    counted = [one for one in windows if one.all_here and one.auc is not None]
    return [one for one in counted if one.columns == counted[-1].columns]


EVIDENCE_FILE = "evidence.json"
_US = timedelta(microseconds=1)


class FigureNumbers(Message):
    """AUC and loss figures of rows of both classes, to the last bit."""

    positives: int
    negatives: int
    aucs: list[float]
    auc_covariance: list[list[float]]
    losses: list[float]
    loss_covariance: list[list[float]]
    expected: list[float]

    @classmethod
    def of(cls, auc: AucEstimate, losses: LossEstimate, expected: Floats) -> FigureNumbers:
        """From estimates on the same rows; pairs and entropy follow from their counts."""
        return cls(
            positives=auc.positives,
            negatives=auc.negatives,
            aucs=auc.values.tolist(),
            auc_covariance=auc.covariance.tolist(),
            losses=losses.values.tolist(),
            loss_covariance=losses.covariance.tolist(),
            expected=expected.tolist(),
        )

    def auc(self) -> AucEstimate:
        values, covariance = np.array(self.aucs), np.array(self.auc_covariance)
        pairs = self.positives * self.negatives
        return AucEstimate(values, covariance, self.positives, self.negatives, pairs)

    def loss(self) -> LossEstimate:
        values, covariance = np.array(self.losses), np.array(self.loss_covariance)
        rows = self.positives + self.negatives
        return LossEstimate(values, covariance, rows, entropy_of(self.positives, rows))


class KnownWindow(Message):
    """A trained window: which judged rows it brought, and figures of its own events.

    start, end: microseconds since 1970 UTC, the end excluded. brought: windows up to this one
    whose events its rows belong to. latest: the latest event time of its rows; any window that
    began by then may have some of them. columns: names of the scores; none while nothing is
    judged. numbers: none with one class only.
    """

    link: Parent
    start: int
    end: int
    brought: list[str] = Field(default_factory=list)
    latest: int | None = None
    columns: list[str] = Field(default_factory=list)
    numbers: FigureNumbers | None = None

    def figures(self, *, all_here: bool) -> WindowFigures:
        known = self.numbers
        return WindowFigures(
            window=self.link.window,
            columns=tuple(self.columns),
            all_here=all_here,
            auc=None if known is None else known.auc(),
            losses=None if known is None else known.loss(),
            positives=0 if known is None else known.positives,
            expected=np.array([] if known is None else known.expected),
        )


class GateEvidence(Message):
    """Known windows of a line, in order and without a gap.

    horizon: from how many windows after its own the rows of an event were taken.
    label: whose rows and scores were taken; empty for the only label, or the first of several.
    """

    horizon: int
    label: str = ""
    windows: list[KnownWindow]

    def figures(self, label_delay: timedelta) -> list[WindowFigures]:
        """Figures of each window. label_delay: after which every complete label has come."""
        trained_to = self.windows[-1].end if self.windows else 0
        delay = label_delay // _US
        return [one.figures(all_here=trained_to >= one.end + delay) for one in self.windows]

    def of_links(self, links: Sequence[Parent], horizon: int, label: str = "") -> list[KnownWindow]:
        """What is known of the first of these links; none if it was gathered for other links."""
        if (self.horizon, self.label) != (horizon, label):
            return []
        names = [one.link for one in self.windows]
        known = links[: links.index(names[-1]) + 1] if names and names[-1] in links else []
        return self.windows[-len(known) :] if known and names[-len(known) :] == known else []
