"""Advice as text and facts: how complete fresh labels are, what is recommended, what it gains."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from forebay.mixture.metrics.estimate import SPREAD_WINDOWS_MIN, Estimate, over_windows
from forebay.mixture.metrics.share import Share
from forebay.system.message import Kept

INCOMPLETE_LABELS = "incomplete_labels"  # as `train.accept` names it


@dataclass(frozen=True)
class Gain:
    """What the recommended variant gained: in a measured regime, or in windows of the line itself.

    regime: None for the line's own. auc: its AUC minus the declared one's; None if the declared one
    was not measured there. plus_minus: half of the 95% interval over seeds, if known.
    """

    regime: str | None
    seeds: int
    auc: Annotated[float | None, Field(alias="auc_difference")]
    plus_minus: float | None

    @property
    def place(self) -> str:
        return "windows of this line" if self.regime is None else repr(self.regime)

    @property
    def words(self) -> str:
        """`+.0104 ± .0040 in 'late conversions' (5 seeds)`."""
        seeds = f"{self.seeds} seed{'s' * (self.seeds != 1)}"
        if self.auc is None:
            return f"not measured as declared in {self.place} ({seeds})"
        interval = f" ± {_figure(self.plus_minus)}" if self.plus_minus is not None else ""
        return f"{_signed(self.auc)}{interval} in {self.place} ({seeds})"


@dataclass(frozen=True)
class Recommendation:
    """The variant that is recommended, and what it is expected to gain.

    changes: whether it differs from what the pipeline declares. measured: the table's date; empty
    where the line has measured it.
    """

    changes: bool
    variant: str
    declared: str
    gains: Annotated[tuple[Gain, ...], Field(alias="expected")]
    measured: str

    @property
    def settings(self) -> str:
        """What to write in the pipeline's YAML."""
        paradigm, _, delay = self.variant.partition("+")
        keys = {"train.paradigm": paradigm}
        if delay or "+" in self.declared:
            keys["train.delay"] = delay or "none"
        return ", ".join(f"{key}: {value}" for key, value in keys.items())

    @property
    def words(self) -> str:
        if not self.changes:
            return f"no measured variant clearly beats {self.declared} in {self._places}"
        measured = f", measured {self.measured}" if self.measured else ""
        return (
            f"{self.settings} is recommended: expected difference in AUC against "
            f"{self.declared}: {self._expected}{measured}"
        )

    @property
    def mean_gain(self) -> float | None:
        """Over regimes; None where the declared variant was not measured."""
        known = [gain.auc for gain in self.gains if gain.auc is not None]
        return sum(known) / len(known) if known else None

    @property
    def _places(self) -> str:
        if len(self.gains) == 1:
            return self.gains[0].place
        return f"the {len(self.gains)} measured regimes most like this data"

    @property
    def _expected(self) -> str:
        """The mean over regimes; of three or more with its interval over them."""
        known = [gain.auc for gain in self.gains if gain.auc is not None]
        if self.mean_gain is None or len(self.gains) == 1:
            return self.gains[0].words
        if len(known) < SPREAD_WINDOWS_MIN:
            return f"{_signed(self.mean_gain)} in {self._places}"
        mean, reach = over_windows(known, [1.0] * len(known))
        return f"{_signed(mean)} ± {_figure(reach)} in {self._places}"


class ToldAdvice(Kept):
    """Advice as a summary holds it: see `Advice` and `Share.as_json`."""

    declared: str = ""
    label_completeness: dict[str, int | float] | None = None
    stream_share: float | None = None
    incomplete_labels: bool = False
    recommendation: Recommendation | None = None
    words: str


@dataclass(frozen=True)
class Advice:
    """The advice for a pipeline, after checking its labels.

    declared: the variant that serves. known: complete positives that the stream knew when it
    published them; None if unknown. stream_share: share of events that it has; None if unknown.
    is_late: whether the declared variant trains on incomplete labels as if they were complete.
    recommendation: None if too little is known.
    """

    declared: str
    known: Share | None
    stream_share: float | None
    is_late: bool
    recommendation: Recommendation | None

    @property
    def words(self) -> str:
        """What a person should know, in one or two sentences."""
        if self.known is None:
            return (
                "label completeness is unknown: no positive event of the stream was found among "
                "the batch rows"
            )
        known = f"{self.known.words} positives are known when the stream row is published"
        if self.is_late:
            known += f"; the others train as negatives, and {self.declared} does not correct that"
        if self.recommendation is None:
            return f"{known}; too little is known to recommend anything"
        return f"{known}; {self.recommendation.words}"

    def told(self) -> ToldAdvice:
        return ToldAdvice(
            declared=self.declared,
            label_completeness=self.known.as_json() if self.known else None,
            stream_share=self.stream_share,
            incomplete_labels=self.is_late,
            recommendation=self.recommendation,
            words=self.words,
        )


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_figure(abs(value))}"


def _figure(value: float) -> str:
    """Four decimals without the leading 0, as papers print AUCs."""
    return f"{value:.4f}".removeprefix("0")


def with_own_figures(
    declared: str,
    measured: Mapping[str, Estimate],
    elsewhere: Recommendation | None,
    benched: Collection[str] = (),
) -> Recommendation | None:
    """The best variant that is clearly better here; otherwise what regimes say and nothing denies.

    measured: AUC of each other variant that was trained beside the declared one, minus its AUC, of
    those that may be recommended. elsewhere: what regimes recommend; it stays if not clearly worse
    here, and its mean gain is possible. benched: what the gate found clearly worse.
    """
    better = {
        name: one
        for name, one in measured.items()
        if one.value > 0 and one.is_clear() and name not in benched
    }
    if better:
        best = max(better, key=lambda name: better[name].value)
        gains = (_gain(better[best]),)
        return Recommendation(
            changes=True, variant=best, declared=declared, gains=gains, measured=""
        )
    if elsewhere is None:
        return None
    own = measured.get(elsewhere.variant)
    if elsewhere.variant not in benched and (own is None or _fits(elsewhere.mean_gain, own)):
        return elsewhere
    gain = Gain(None, 1, None, None) if own is None else _gain(own)
    return replace(elsewhere, changes=False, variant=declared, gains=(gain,), measured="")


def _fits(elsewhere: float | None, own: Estimate) -> bool:
    worse = own.value < 0 and own.is_clear()
    return not worse and (elsewhere is None or own.low <= elsewhere <= own.high)


def _gain(own: Estimate) -> Gain:
    return Gain(None, own.seeds, own.value, own.reach)
