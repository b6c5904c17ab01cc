"""The gate: which variant of a trained window serves, decided by event scores alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from forebay.mixture.score_columns import ScoreColumn, over_seeds

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


# How many windows are looked at, the newest ones: two days of hours.
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
    incumbent is the declared variant, or with `against: served` that of the newest decision.
    Windows with missing complete labels, or with one class only, are not used. The others decide
    together, older ones with less weight. The interval allows for other rows having been drawn and,
    from three windows on, for other windows too: what is better at night may be worse by day, and
    what serves will answer in future windows. Another choice of seeds moves a difference too: with
    fewer than `SEEDS_MIN` of them it takes three windows, and an AUC that is better by more than
    seeds move it. A variant that expects less than half of the positives, or more than twice as
    many, is not chosen.

    variants: those that are trained, the declared one first.
    windows: event scores, in order. serving: the variant of the newest decision; None before the
    first one. half_life: windows until a window counts half.
    """
    declared = incumbent = variants[0]
    if spec.against == "served" and serving is not None and serving in variants:
        incumbent = serving
    found = GateDecision(variant=incumbent, declared=declared, words="")
    if len(variants) == 1:
        words = f"{declared} serves: nothing else is trained"
        return found.model_copy(update={"words": words})
    counted = counted_windows(windows[-WINDOWS_MAX:])
    ages = {one.window: age for age, one in enumerate(reversed(windows))}
    seeds = len(next(iter(over_seeds(counted[0].columns).values()))) if counted else SEEDS_MIN
    least = 1 if seeds >= SEEDS_MIN else SPREAD_WINDOWS_MIN
    chosen = [_weighted(one, 0.5 ** (ages[one.window] / half_life)) for one in counted]
    rows = sum(one.auc.positives + one.auc.negatives for one in counted if one.auc is not None)
    if rows < spec.min_rows or len(counted) < least:
        how = "as declared" if incumbent == declared else "as before"
        windows_too = f" of {least} windows (train.seeds is below {SEEDS_MIN})" if least > 1 else ""
        words = (
            f"{incumbent} serves {how}: the gate needs {spec.min_rows:,} judged rows "
            f"(job.publish.min_rows){windows_too}, and windows with all their labels and both "
            f"classes have {rows:,}{f' of {len(counted)}' if least > 1 else ''}"
        )
        return found.model_copy(update={"words": words, "rows": rows})
    noise = SEED_NOISE if spec.metric == "auc" else 0.0  # of losses it is not measured
    left_out = _uncalibrated(chosen, [name for name in variants if name != incumbent])
    eligible = [name for name in variants if name not in left_out]
    best, difference = _best(spec.metric, chosen, eligible, incumbent)
    words = f"{incumbent} serves: it is the best at event time, by {spec.metric}"
    if difference is not None:
        variant = best if difference.is_clear(noise) else incumbent
        compared = difference_words(best, incumbent, difference, noise)
        words = f"{variant} serves: at event time, by {spec.metric}, {compared}"
        found = found.model_copy(update={"variant": variant})
    for name, share in left_out.items():
        words += f"; {name} is left out: calibration {share:.2f}"
    keys = [one.window for one in counted]
    return found.model_copy(update={"words": words, "windows": keys, "rows": rows})


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


def _best(
    metric: GateMetric, chosen: Sequence[WindowFigures], variants: Sequence[str], incumbent: str
) -> tuple[str, Estimate | None]:
    """The best variant, and by how much it beats the incumbent; None if it is the incumbent."""
    aucs = [one.auc for one in chosen if one.auc is not None]
    losses = [one.losses for one in chosen if one.losses is not None]
    auc, loss = pool(aucs), pool_losses(losses)
    if auc is None or loss is None:
        return incumbent, None
    measured: AucEstimate | LossEstimate = auc
    windows: Sequence[AucEstimate | LossEstimate] = aucs
    if metric != "auc":
        measured, windows = loss, losses
    if metric == "normalised_entropy":
        measured = loss.normalised()
        windows = [replace(one, entropy=loss.entropy).normalised() for one in losses]
    sign = 1.0 if metric == "auc" else -1.0
    answers = over_seeds(chosen[0].columns)
    places = {one.name: answers[one] for one in map(ScoreColumn, variants) if one in answers}
    values = {name: sign * measured.interval(each).value for name, each in places.items()}
    best = max(values, key=lambda name: (values[name], name == incumbent))
    if best == incumbent:
        return incumbent, None
    pair = (best, incumbent) if metric == "auc" else (incumbent, best)  # losses: less is better
    return best, _difference(measured, windows, *(places[name] for name in pair))


def _difference(
    pooled: AucEstimate | LossEstimate,
    windows: Sequence[AucEstimate | LossEstimate],
    first: Columns,
    second: Columns,
) -> Estimate:
    """`first` minus `second`, with the wider interval: over rows, or over windows."""
    found = pooled.difference(first, second)
    if len(windows) < SPREAD_WINDOWS_MIN:
        return found
    apart = [one.difference(first, second).value for one in windows]
    weights = [one.pairs if isinstance(one, AucEstimate) else one.rows for one in windows]
    reach = max(found.high - found.value, over_windows(apart, weights)[1])
    return replace(found, low=found.value - reach, high=found.value + reach)
