"""Which paradigm is recommended: a pure function of a situation and the measured regimes.

It takes the regimes that resemble the situation in what can be known beforehand. Whether the data
drifts or its labels will be missing for hours cannot be known, so regimes that differ only in that
get one answer: the variant with the smallest maximum loss against the best of each regime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from forebay.mixture.advice.recommendation import Advice, Gain, Recommendation
from forebay.mixture.advice.regimes import MeasuredVariant, Regime, RegimeTable, difference_of, fits
from forebay.mixture.metrics.share import Share
from forebay.mixture.metrics.verdict import COMPLETENESS_MIN, POSITIVES_MIN

LOSS_MAX = 0.003  # AUC: a variant that loses more against the best of a regime is not recommended
SAME = 0.001  # AUC: differences below this are within the noise of seeds, so the declared one stays
SPARSE = 0.5  # share of events that are in the stream

_BATCH_READERS = {"batch", "batch_then_stream", "mixed", "mixture"}
# In a window, these train on the label that a stream row carries, as it is.
_STREAM_READERS = {"stream", "batch_then_stream", "mixed", "mixture"}
_NEEDS_WARM_START = "batch_then_stream"


@dataclass(frozen=True)
class Situation:
    """What is known about a data set before a model is trained on it.

    completeness: share of complete positives that the stream knew; None if unknown. interval: what
    it may be, where it is the share of a sample. stream_share:
    share of events that the stream has; None if unknown, which counts as all. can_correct: whether
    late labels can be recognised: by twins, or by when they were known. has_warm_start: whether
    history is replayed before the first window; without it, `batch_then_stream` trains on no batch
    rows and is the same as `stream`.
    """

    completeness: float | None
    stream_share: float | None = None
    has_batch: bool = True
    has_stream: bool = True
    can_correct: bool = True
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


def advise(
    known: Share | None,
    situation: Situation,
    declared: str,
    settings: Mapping[str, object],
    table: RegimeTable,
) -> Advice:
    """The advice for a pipeline. known: positives that its stream knew; see `recommend`."""
    enough = known is not None and known.whole >= POSITIVES_MIN
    late = enough and is_incomplete(situation.span[1]) and learns_late_labels(declared)
    return Advice(
        declared=declared,
        known=known,
        stream_share=situation.stream_share,
        is_late=late,
        recommendation=recommend(situation, declared, settings, table) if enough else None,
    )


def recommend(
    situation: Situation, declared: str, settings: Mapping[str, object], table: RegimeTable
) -> Recommendation | None:
    """What to declare; None if too little is known, or nothing suitable was measured.

    settings: the pipeline's, by dotted key.
    """
    if situation.completeness is None or not situation.has_stream:
        return None
    for like in _narrowing(regimes_like(situation, table), situation.completeness):
        losses = _losses(like, situation)
        best = min(losses, key=lambda name: losses[name], default=None)
        # Narrowing further would separate regimes that are equally near.
        is_last = len({each.completeness for each in like}) == 1
        if best is not None and (losses[best] <= LOSS_MAX or is_last):
            measured_as = _measured_as(declared, situation)
            return _recommendation(like, best, declared, measured_as, settings, table)
    return None


def regimes_like(situation: Situation, table: RegimeTable) -> list[Regime]:
    """Regimes that resemble a situation: in late labels first, then in sparseness, then in ids.

    What lies between two measured completenesses resembles both, and so do all that are complete.
    """
    found = list(table.regimes)
    share = 1.0 if situation.stream_share is None else situation.stream_share
    low, high = situation.span
    below = max((each.completeness for each in found if each.completeness <= low), default=0.0)
    above = min((each.completeness for each in found if each.completeness >= high), default=1.0)
    late = {
        each.name
        for each in found
        if below <= each.completeness <= above
        or not (is_incomplete(each.completeness) or is_incomplete(high))
    }
    for is_like in (
        lambda each: each.name in late,
        lambda each: (each.stream_share < SPARSE) == (share < SPARSE),
        lambda each: each.crowded == situation.crowded,
    ):
        found = [each for each in found if is_like(each)] or found
    return found


def _narrowing(regimes: Sequence[Regime], completeness: float) -> Iterator[list[Regime]]:
    """All regimes, then fewer and fewer: those whose completeness is farthest are dropped first.

    Finally, each of the nearest ones alone, since there may be no variant measured in all of them.
    """
    distances = {each.name: round(abs(each.completeness - completeness), 6) for each in regimes}
    for farthest in sorted(set(distances.values()), reverse=True):
        nearest = [each for each in regimes if distances[each.name] <= farthest]
        yield nearest
    yield from ([each] for each in nearest)


def _losses(regimes: Sequence[Regime], situation: Situation) -> dict[str, float]:
    """The maximum loss of AUC over regimes, for each variant that was measured in all of them."""
    found: dict[str, float] = {}
    names = [{each.name for each in _usable(regime, situation)} for regime in regimes]
    for regime in regimes:
        usable = {each.name: each.auc for each in _usable(regime, situation)}
        for name in set.intersection(*names):
            loss = max(usable.values()) - usable[name]
            found[name] = max(found.get(name, 0.0), loss)
    return dict(sorted(found.items()))


def _usable(regime: Regime, situation: Situation) -> list[MeasuredVariant]:
    return [each for each in regime.variants if _can_learn(each.variant, situation)]


def _can_learn(variant: str, situation: Situation) -> bool:
    paradigm, _, delay = variant.partition("+")
    corrects = situation.can_correct and situation.has_batch and situation.has_stream
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


def _recommendation(
    like: Sequence[Regime],
    best: str,
    declared: str,
    measured_as: str,
    settings: Mapping[str, object],
    table: RegimeTable,
) -> Recommendation:
    ours = [_as_declared(regime, measured_as, settings) for regime in like]
    chosen = [next(each for each in regime.variants if each.name == best) for regime in like]
    apart = [
        None if own is None else one.auc - own.auc for one, own in zip(chosen, ours, strict=True)
    ]
    changes = any(each is None or each > SAME for each in apart)
    changes = changes and all(each is None or each >= -LOSS_MAX for each in apart)
    return Recommendation(
        changes=changes,
        variant=chosen[0].variant if changes else declared,
        options=chosen[0].options if changes else {},
        declared=declared,
        gains=tuple(map(_gain, like, chosen, ours)),
        measured=table.measured.isoformat(),
    )


def _as_declared(
    regime: Regime, declared: str, settings: Mapping[str, object]
) -> MeasuredVariant | None:
    """The measurement with the declared settings that names most of them; None if there is none."""
    found = [
        each
        for each in regime.variants
        if each.variant == declared and fits(each.options, settings)
    ]
    return max(found, key=lambda each: len(each.options), default=None)


def _gain(regime: Regime, chosen: MeasuredVariant, own: MeasuredVariant | None) -> Gain:
    auc, interval = (None, None) if own is None else difference_of(chosen, own)
    return Gain(regime.name, regime.seeds, auc, interval)
