"""The gate: which variant of a trained window serves, decided by event scores alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from forebay.config.specs.jobs import GateMetric, PublishSpec
from forebay.config.specs.windows import WindowSize
from forebay.executors.judging.evidence.gate_evidence import WindowFigures, counted_windows
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import GateDecision, Link
from forebay.home.store.open import store_of
from forebay.mixture.metrics.auc import AucEstimate, pool
from forebay.mixture.metrics.estimate import (
    SEED_NOISE,
    SEEDS_MIN,
    SPREAD_WINDOWS_MIN,
    Estimate,
    over_windows,
)
from forebay.mixture.metrics.losses import LossEstimate, pool_losses
from forebay.mixture.metrics.seeds import Columns
from forebay.mixture.metrics.verdict import difference_words, is_calibrated
from forebay.mixture.score_columns import over_seeds

GATE_FILE = "gate.json"


def gate_decision(chain: ModelChain, link: Link) -> GateDecision | None:
    """The gate's decision on a link whose model was exported; None where there was no gate.

    Raises:
        DataError: when the stored decision is missing or damaged.
    """
    stored = link.files.get("gate")
    if stored is None:
        return None
    return GateDecision.model_validate_json(store_of(chain.home).path(stored).read_bytes())


# How many windows decide, the newest whose labels are all here: two days of hours.
WINDOWS_MAX = 48
# In windows: a whole day, so that night and day count alike, or a whole week.
HALF_LIVES = {WindowSize.HOUR: 24, WindowSize.DAY: 7}


def decide(
    spec: PublishSpec,
    variants: Sequence[str],
    windows: Sequence[WindowFigures],
    serving: str | None = None,
    half_life: int = HALF_LIVES[WindowSize.DAY],
) -> GateDecision:
    """Choose the variant that serves.

    The incumbent stays unless the best of the others is significantly better at event time. The
    incumbent is the variant of the newest decision; without `against: served` only as long as it is
    ahead of the declared one, which is the incumbent otherwise.
    Windows with missing complete labels, or with one class only, are not used. The others decide
    together, older ones with less weight. The interval allows for other rows having been drawn and,
    from three windows on, for other windows too: what is better at night may be worse by day, and
    what serves will answer in future windows. Another choice of seeds moves a difference too: with
    fewer than `SEEDS_MIN` of them it takes three windows, and an AUC that is better by more than
    seeds move it. A variant that expects less than half of the positives, or more than twice as
    many, is not chosen, and kept only if it is declared. One that is clearly worse than what
    serves, in three windows or more, is benched: it is trained and scored, and the decision names
    it.

    variants: those that are trained, the declared one first.
    windows: event scores, in order. serving: the variant of the newest decision; None before the
    first one. half_life: windows until a window counts half.
    """
    declared = variants[0]
    before = serving if serving is not None and serving in variants else declared
    incumbent = before if spec.against == "served" else declared
    found = GateDecision(variant=incumbent, declared=declared, words="")
    if len(variants) == 1:
        words = f"{declared} serves: nothing else is trained"
        return found.model_copy(update={"words": words})
    counted = counted_windows(windows)[-WINDOWS_MAX:]
    ages = {one.window: age for age, one in enumerate(reversed(windows))}
    seeds = len(next(iter(over_seeds(counted[0].columns).values()))) if counted else SEEDS_MIN
    least = 1 if seeds >= SEEDS_MIN else SPREAD_WINDOWS_MIN
    chosen = [_weighted(one, 0.5 ** (ages[one.window] / half_life)) for one in counted]
    rows = sum(one.auc.positives + one.auc.negatives for one in counted if one.auc is not None)
    if rows < spec.min_rows or len(counted) < least:
        how = "as declared" if incumbent == declared else "as before"
        words = f"{incumbent} serves {how}: {_too_little(spec, rows, len(counted), least)}"
        return found.model_copy(update={"words": words, "rows": rows})
    noise = SEED_NOISE if spec.metric == "auc" else 0.0  # of losses it is not measured
    left_out = _uncalibrated(chosen, [name for name in variants if name != declared])
    measured = _Measured.of(spec.metric, chosen)
    is_ahead = measured is not None and measured.best([declared, before], declared) == before
    stays = before not in left_out and (is_ahead or spec.against == "served")
    incumbent = before if stays else declared
    eligible = [name for name in variants if name not in left_out]
    variant = incumbent
    words = f"{incumbent} serves: it is the best at event time, by {spec.metric}"
    benched: list[str] = []
    if measured is not None:
        best = measured.best(eligible, incumbent)
        if best != incumbent:
            difference = measured.difference(best, incumbent)
            variant = best if difference.is_clear(noise) else incumbent
            compared = difference_words(best, incumbent, difference, noise)
            words = f"{variant} serves: at event time, by {spec.metric}, {compared}"
        benched = measured.benched(variants, variant, noise)
    for name, share in left_out.items():
        words += f"; {name} is left out: calibration {share:.2f}"
    if benched:
        words += f"; benched, as clearly worse than {variant}: {', '.join(benched)}"
    known = {"windows": [one.window for one in counted], "rows": rows, "benched": benched}
    return found.model_copy(update={"variant": variant, "words": words, **known})


def _too_little(spec: PublishSpec, rows: int, windows: int, least: int) -> str:
    of_least = f" of {least} windows (train.seeds is below {SEEDS_MIN})" if least > 1 else ""
    return (
        f"the gate needs {spec.min_rows:,} judged rows (job.publish.min_rows){of_least}, and "
        f"windows with all their labels and both classes have {rows:,}"
        f"{f' of {windows}' if least > 1 else ''}"
    )


def _weighted(window: WindowFigures, weight: float) -> WindowFigures:
    """A window's figures as they count beside newer ones."""
    auc, losses = window.auc, window.losses
    return replace(
        window,
        auc=None if auc is None else replace(auc, pairs=weight * auc.pairs),
        losses=None if losses is None else replace(losses, rows=weight * losses.rows),
        positives=weight * window.positives,
        expected=weight * window.expected,
    )


def _uncalibrated(chosen: Sequence[WindowFigures], variants: Sequence[str]) -> dict[str, float]:
    """Variants whose expected positives are not those that came, by a factor of 2: their share.

    Twice as many cost money wherever a probability is used, however well they order the rows.
    """
    positives = sum(one.positives for one in chosen)
    expected = np.sum([one.expected for one in chosen], axis=0) / positives
    shares = {
        column.name: float(expected[list(places)].mean())
        for column, places in over_seeds(chosen[0].columns).items()
        if column.name in variants
    }
    return {name: share for name, share in shares.items() if not is_calibrated(share)}


@dataclass(frozen=True)
class _Measured:
    """Variants by one metric. pooled: over `windows`. places: the columns of each variant."""

    pooled: AucEstimate | LossEstimate
    windows: Sequence[AucEstimate | LossEstimate]
    places: Mapping[str, Columns]

    @classmethod
    def of(cls, metric: GateMetric, chosen: Sequence[WindowFigures]) -> _Measured | None:
        """None where no window has both classes."""
        aucs = [one.auc for one in chosen if one.auc is not None]
        losses = [one.losses for one in chosen if one.losses is not None]
        auc, loss = pool(aucs), pool_losses(losses)
        if auc is None or loss is None:
            return None
        places = {column.name: at for column, at in over_seeds(chosen[0].columns).items()}
        if metric == "auc":
            return cls(auc, aucs, places)
        if metric == "log_loss":
            return cls(loss, losses, places)
        normalised = [replace(one, entropy=loss.entropy).normalised() for one in losses]
        return cls(loss.normalised(), normalised, places)

    def best(self, variants: Sequence[str], incumbent: str) -> str:
        """The incumbent, if nothing is better."""
        sign = 1.0 if isinstance(self.pooled, AucEstimate) else -1.0
        values = {
            name: sign * self.pooled.interval(self.places[name]).value
            for name in variants
            if name in self.places
        }
        return max(values, key=lambda name: (values[name], name == incumbent), default=incumbent)

    def benched(self, variants: Sequence[str], serves: str, noise: float) -> list[str]:
        """Variants that what serves clearly beats, in three windows or more."""
        if len(self.windows) < SPREAD_WINDOWS_MIN or serves not in self.places:
            return []
        others = [name for name in variants if name != serves and name in self.places]
        leads = {name: self.difference(serves, name) for name in others}
        return [name for name, lead in leads.items() if lead.value > 0 and lead.is_clear(noise)]

    def difference(self, one: str, other: str) -> Estimate:
        """How much better `one` is, with the wider interval: over rows, or over windows."""
        pair = (one, other) if isinstance(self.pooled, AucEstimate) else (other, one)
        first, second = (self.places[name] for name in pair)  # of losses, less is better
        found = self.pooled.difference(first, second)
        if len(self.windows) < SPREAD_WINDOWS_MIN:
            return found
        apart = [each.difference(first, second).value for each in self.windows]
        weights = [
            each.pairs if isinstance(each, AucEstimate) else each.rows for each in self.windows
        ]
        reach = max(found.high - found.value, over_windows(apart, weights)[1])
        return replace(found, low=found.value - reach, high=found.value + reach)
