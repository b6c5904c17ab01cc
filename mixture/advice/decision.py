"""Which paradigm is recommended: a pure function of a situation and the measured regimes.

It takes the regimes that resemble the situation in what can be known beforehand. How fast the data
drifts and whether its labels will be missing for hours cannot be known, so regimes that differ only
in that get one answer: the variant that loses least against the best of each, in their mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from forebay.mixture.advice.recommendation import Advice, Gain, Recommendation
from forebay.mixture.advice.regimes import Regime, RegimeTable, difference_of
from forebay.mixture.metrics.share import Share
from forebay.mixture.metrics.verdict import COMPLETENESS_MIN, POSITIVES_MIN

# AUC: variants that lose so much more than the best, in the mean of regimes, are as good: a choice
# of seeds moves it by more. Of these the declared one stays, else the best of the usual ones.
SAME = 0.003
USUAL = ("mixture", "mixture+fnw", "mixture+head", "mixed+head", "mixed", "batch")
NEAR = 1.0  # log odds of being known: regimes that are so much later or earlier resemble data
NEAREST_MIN = 3
SPARSE = 0.5  # share of events that are in the stream

_BATCH_READERS = {"batch", "batch_then_stream", "mixed", "mixture"}
# In a window, these train on the label that a stream row carries, as it is.
_STREAM_READERS = {"stream", "batch_then_stream", "mixed", "mixture"}
_NEEDS_WARM_START = "batch_then_stream"


@dataclass(frozen=True)
class Situation:
    """What is known about a data set before a model is trained on it.

    completeness: share of complete positives that the stream knew; None if unknown. interval: what
    it may be, where it is the share of a sample. stream_share: share of events that the stream has;
    None if unknown, which counts as all. has_warm_start: whether history is replayed before the
    first window; without it, `batch_then_stream` trains on no batch rows and is the same as
    `stream`. crowded: see `Regime`.
    """

    completeness: float | None
    stream_share: float | None = None
    has_batch: bool = True
    has_stream: bool = True
    has_warm_start: bool = True
    crowded: bool = False
    interval: tuple[float, float] | None = None

    @property
    def span(self) -> tuple[float, float]:
        """What the completeness may be; an unknown one counts as complete."""
        known = 1.0 if self.completeness is None else self.completeness
        return self.interval or (known, known)


def learns_late_labels(variant: str) -> bool:
    """Whether a variant trains on the labels of a stream without correcting late ones."""
    return variant in _STREAM_READERS


def is_incomplete(completeness: float) -> bool:
    """Whether too few positives are known when a stream's rows are published."""
    return completeness < COMPLETENESS_MIN


def advise(known: Share | None, situation: Situation, declared: str, table: RegimeTable) -> Advice:
    """The advice for a pipeline. known: positives that its stream knew; see `recommend`."""
    enough = known is not None and known.whole >= POSITIVES_MIN
    late = enough and is_incomplete(situation.span[1]) and learns_late_labels(declared)
    return Advice(
        declared=declared,
        known=known,
        stream_share=situation.stream_share,
        is_late=late,
        recommendation=recommend(situation, declared, table) if enough else None,
    )


def recommend(situation: Situation, declared: str, table: RegimeTable) -> Recommendation | None:
    """What to declare; None if too little is known, or nothing suitable was measured."""
    if situation.completeness is None or not situation.has_stream:
        return None
    like = regimes_like(situation, table)
    names = [name for name in like[0].aucs if _can_learn(name, situation)]
    if is_incomplete(situation.span[1]):  # whatever its AUC, its probabilities are too low
        names = [name for name in names if not learns_late_labels(name)] or names
    losses = {name: fmean(each.loss_of(name) for each in like) for name in names}
    if not losses:
        return None
    own = _measured_as(declared, situation)
    least = min(losses.values()) + SAME
    usual = [name for name in USUAL if losses.get(name, 1.0) <= least]
    best = min(usual or losses, key=losses.__getitem__)
    if own in losses and losses[own] <= least:
        best = own
    return Recommendation(
        changes=best != own,
        variant=declared if best == own else best,
        declared=declared,
        gains=tuple(_gain(each, best, own) for each in like),
        measured=table.measured.isoformat(),
    )


def regimes_like(situation: Situation, table: RegimeTable) -> list[Regime]:
    """Regimes that resemble a situation: in late labels first, then in sparseness, then in ids."""
    found = sorted(table.regimes, key=lambda each: _apart(each, situation))
    near = sum(_apart(each, situation) <= NEAR for each in found)
    found = found[: max(near, NEAREST_MIN)]
    share = 1.0 if situation.stream_share is None else situation.stream_share
    found = [each for each in found if (each.stream_share < SPARSE) == (share < SPARSE)] or found
    return [each for each in found if each.crowded == situation.crowded] or found


def _apart(regime: Regime, situation: Situation) -> float:
    """How much more or less is known at publication, in log odds; all that is complete is alike."""
    low, high = situation.span
    if not is_incomplete(low) and not is_incomplete(regime.completeness):
        return 0.0
    known = _log_odds(regime.completeness)
    return max(_log_odds(low) - known, known - _log_odds(high), 0.0)


def _log_odds(share: float) -> float:
    bounded = min(max(share, 0.01), 0.99)
    return math.log(bounded / (1 - bounded))


def _can_learn(variant: str, situation: Situation) -> bool:
    paradigm, _, delay = variant.partition("+")
    corrects = situation.has_batch and situation.has_stream
    return (
        (situation.has_batch or paradigm not in _BATCH_READERS)
        and (situation.has_warm_start or paradigm != _NEEDS_WARM_START)
        and (situation.has_stream or paradigm not in _STREAM_READERS)
        and (corrects or not delay)
    )


def _measured_as(declared: str, situation: Situation) -> str:
    """The measured variant that trains on the same rows as the declared one."""
    paradigm, plus, delay = declared.partition("+")
    if paradigm == _NEEDS_WARM_START and not situation.has_warm_start:
        return f"stream{plus}{delay}"
    return declared


def _gain(regime: Regime, chosen: str, own: str) -> Gain:
    variants = {each.variant: each for each in regime.variants}
    if own not in variants:
        return Gain(regime.name, regime.seeds, None, None)
    return Gain(regime.name, regime.seeds, *difference_of(variants[chosen], variants[own]))
