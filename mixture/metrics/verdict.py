"""Sentences about paradigms: whether they differ, and whether fresh labels suffice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forebay.mixture.metrics.estimate import SEED_NOISE, Estimate
from forebay.mixture.metrics.figures import EventScores, PooledAnswer
from forebay.mixture.metrics.share import Share

COMPLETENESS_MIN = 0.9
CALIBRATION_MIN = 0.5
POSITIVES_MIN = 30  # fewer say too little about the rest
# These never train their output on complete labels: a label not known by publication trains as 0.
_TRUSTS_FRESH_LABELS = ("mixture", "stream", "batch_then_stream")


def difference_words(
    first: str, second: str, difference: Estimate, noise: float = SEED_NOISE
) -> str:
    """Whether two variants differ. noise: see `Estimate.is_clear`; 0 where it was not measured."""
    figures = (
        f"(difference {difference.value:.4f}, "
        f"95% interval {difference.low:.4f} to {difference.high:.4f}, {difference.covers})"
    )
    if not difference.excludes_zero:
        return f"{first} and {second} do not differ {figures}"
    if not difference.is_clear(noise):
        return f"{first} and {second} do not differ by more than another seed may move {figures}"
    verb = "is better than" if difference.value > 0 else "is worse than"
    limit = "" if difference.covers_seeds else " on these rows only"
    return f"{first} {verb} {second}{limit} {figures}"


def is_calibrated(share: float) -> bool:
    """share: expected positives divided by those that came."""
    return CALIBRATION_MIN <= share <= 1 / CALIBRATION_MIN


def doubtful_words(answers: Mapping[str, EventScores | PooledAnswer]) -> list[str]:
    """Of which answers, by name, probabilities mean little; towers do not answer.

    A normalised entropy above 1 is worse than always answering the share of positives.
    """
    said = []
    for name, figures in answers.items():
        share, found = figures.calibration, figures.normalised_entropy
        entropy = found.value if isinstance(found, Estimate) else found
        if "/" in name or figures.positives < POSITIVES_MIN or entropy is None or share is None:
            continue  # no entropy: one class only
        if not is_calibrated(share) or entropy > 1:
            said.append(
                f"probabilities of {name} are unusable as they are: it expects {share:.2f} "
                f"positives for each that came, and its normalised entropy is {entropy:.3f}"
            )
    return said


def partial_words(value: float | None, judged: int, rows: int | None = None) -> str:
    """A figure as text while complete labels of its window are still missing.

    rows: how many the window has; None if unknown.
    """
    figure = "none" if value is None else f"{value:.3f}"
    of = "" if rows is None else f" of {rows:,}"
    return f"{figure} so far, {judged:,}{of} rows judged"


def one_class_words(positives: int, rows: int) -> str:
    """Why a figure that compares both classes does not exist, for one window or several."""
    if rows == 0:
        return "no rows judged"
    where = "one class" if positives in {0, rows} else "one class in each window"
    of = "positive" if positives == 1 else "positives"
    return f"{where}: {positives:,} {of} of {rows:,} row{'s' if rows != 1 else ''}"


def completeness_words(paradigms: Sequence[str], known: Share | None) -> str | None:
    """The warning when too few positives are known in time; None when all is well or unknown.

    All is well too where every paradigm corrects late labels, or trains on complete ones alone.

    known: complete positives that were known when the stream row was published. As advice does, it
    warns from 30 positives on, where the whole interval is too low.
    """
    if known is None or known.whole < POSITIVES_MIN or known.high >= COMPLETENESS_MIN:
        return None
    if all(name == "batch" or "+" in name for name in paradigms):
        return None
    share = (
        f"only {share_text(known.part, known.whole)} of positives are known when the stream row is "
        f"published ({known.part:,} of {known.whole:,}); the others train as negatives"
    )
    concerned = [name for name in paradigms if name in _TRUSTS_FRESH_LABELS]
    if not concerned:
        return f"labels of the stream are incomplete: {share}"
    first, *others = concerned
    words = f"{first} is a bad choice here: {share}"
    return f"{words}; the same holds for {' and '.join(others)}" if others else words


def share_text(part: int, whole: int) -> str:
    """A percentage, rounded down."""
    return f"{100 * part // whole}%" if whole else "none"
