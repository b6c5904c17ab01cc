"""Figures by one label, of one window and pooled over several, as they are stored and reported.

Light: whoever reads them needs no NumPy. Intervals are of 95%. Fields with a default may be missing
in what was stored earlier.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forebay.mixture.metrics.estimate import Estimate
from forebay.system.message import Kept

Interval = tuple[float, float]


class EventScores(Kept):
    """A variant or tower by complete labels of events, of all rows or a part; means over its seeds.

    words: how much is judged so far, or why there is no AUC; else empty.
    """

    auc: float | None = None
    auc_interval: Interval | None = None
    log_loss: float | None = None
    normalised_entropy: float | None = None
    calibration: float | None = None
    rows: int = 0
    positives: int = 0
    seeds: int = 1
    words: str = ""

    @property
    def estimate(self) -> Estimate | None:
        return _estimate(self.auc, self.auc_interval)


class PublicationScores(Kept):
    """A variant or tower by labels of rows scored at publication; with several seeds, means.

    Figures without a suffix judge all `rows` by the fresh label; those that end in `_true` judge
    `joined_rows` by the complete one. words_true: how many of these there are while more may come;
    else empty. duplicates: rows left out, as their event had been scored before.
    """

    auc_fresh: float | None = None
    auc_fresh_interval: Interval | None = None
    auc_true: float | None = None
    auc_true_interval: Interval | None = None
    words_true: str = ""
    rows: int = 0
    positives: int = 0
    joined_rows: int = 0
    positives_true: int = 0
    duplicates: int = 0
    log_loss: float | None = None
    normalised_entropy: float | None = None
    calibration: float | None = None
    log_loss_true: float | None = None
    normalised_entropy_true: float | None = None
    calibration_true: float | None = None

    @property
    def fresh(self) -> Estimate | None:
        return _estimate(self.auc_fresh, self.auc_fresh_interval)

    @property
    def true(self) -> Estimate | None:
        return _estimate(self.auc_true, self.auc_true_interval)


class Unjudged(Kept):
    """Events without a score: see `EventRows`."""

    gone: int = 0
    before: int = 0
    left_out: int = 0


class EventBlock(Kept):
    """Events of a window, scored when they happened; by variant or tower, source, and slice.

    complete: whether all their labels are there.
    """

    rows: int = 0
    judged: int = 0
    unjudged: Unjudged = Unjudged()
    complete: bool
    answers: dict[str, EventScores] = Field(default_factory=dict)
    sources: dict[str, dict[str, EventScores]] = Field(default_factory=dict)
    slices: dict[str, dict[str, dict[str, EventScores]]] = Field(default_factory=dict)


class LabelCounts(Kept):
    """Positives of the stream, and how many of them were known at publication."""

    fresh_positives: int = 0
    complete_positives: int = 0
    share: float | None = None


class LabelAge(Kept):
    """The same of rows that waited at most so long for publication; None: longer than others."""

    until_seconds: int | None
    fresh_positives: int
    complete_positives: int


class LabelPart(Kept):
    """What is known of a window by one label."""

    metrics: dict[str, PublicationScores] = Field(default_factory=dict)
    label_completeness: LabelCounts | None = None
    event: EventBlock | None = None

    @property
    def answers(self) -> dict[str, EventScores]:
        return self.event.answers if self.event else {}

    @property
    def is_partial(self) -> bool:
        """Whether complete labels of its events are still to come."""
        return self.event is not None and not self.event.complete


class PooledScores(Kept):
    auc_fresh: Estimate | None = None
    auc_true: Estimate | None = None


class CurvePoint(Kept):
    """Rows with similar scores: the mean score, and the share of positives among them."""

    expected: float
    observed: Estimate
    rows: int


class PooledAnswer(Kept):
    """Pooled event scores of a variant or tower. calibration: 1 is ideal."""

    auc: Estimate
    log_loss: Estimate | None = None
    normalised_entropy: Estimate
    calibration: float
    positives: int = 0
    curve: list[CurvePoint] = Field(default_factory=list)


class PooledPart(Kept):
    """Pooled event scores of a source or slice. words: why there are none."""

    auc: Estimate | None
    rows: int
    positives: int
    words: str = ""


# By source or value, and by variant or tower.
PooledParts = dict[str, dict[str, PooledPart]]


class PooledEvent(Kept):
    windows: int = 0
    judged: int = 0
    answers: dict[str, PooledAnswer] = Field(default_factory=dict)
    sources: PooledParts = Field(default_factory=dict)
    slices: dict[str, PooledParts] = Field(default_factory=dict)


class Difference(Kept):
    """Of the AUCs of two variants, `a` minus `b`, with a verdict in words."""

    a: str
    b: str
    value: float
    low: float
    high: float
    seeds: int = 1
    differ: bool
    words: str

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.value, self.low, self.high, self.seeds)


class Pooled(Kept):
    """Figures over windows. scored_at, label: which scores are compared, and by which labels."""

    paradigms: dict[str, PooledScores] = Field(default_factory=dict)
    event: PooledEvent | None = None
    scored_at: Literal["event", "publication"] = "publication"
    label: Literal["complete", "fresh"] = "complete"
    differences: list[Difference] = Field(default_factory=list)
    label_completeness: LabelCounts | None = None
    label_ages: list[LabelAge] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)

    @property
    def answers(self) -> dict[str, PooledAnswer]:
        return self.event.answers if self.event else {}


def _estimate(value: float | None, interval: Interval | None) -> Estimate | None:
    return None if value is None or interval is None else Estimate(value, *interval)
