"""Figures of replayed markets: of one run, and of several seeds with their spread."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from replay import Replayed
from scipy import stats
from variants import SINGLE_TOWERS

from forebay.mixture.metrics.auc import AucEstimate, estimate_auc, pool
from forebay.mixture.metrics.probabilities import calibration, normalised_entropy


class Run(NamedTuple):
    """Figures of one run, by variant. completeness: of the stream's conversions, those known.

    auc: pooled over the hours, so that a base rate that moves cannot count. learnt: rows.
    """

    market: str
    seed: int
    guarded: bool
    completeness: float
    events: int
    positives: int
    auc: dict[str, float]
    normalised_entropy: dict[str, float]
    calibration: dict[str, float]
    learnt: dict[str, int]
    pauses: list[tuple[str, float, float]]
    cpu_seconds: float


def figures_of(
    market: str, seed: int, found: Replayed, completeness: float, *, guarded: bool
) -> Run:
    """Judge what was answered by the complete labels."""
    pooled = pooled_auc(found)
    columns = list(zip(found.columns, found.scores.T, strict=True))
    converted = found.converted
    return Run(
        market=market,
        seed=seed,
        guarded=guarded,
        completeness=completeness,
        events=len(converted),
        positives=int(converted.sum()),
        auc=dict(zip(found.columns, pooled.values.tolist(), strict=True)),
        normalised_entropy={name: normalised_entropy(converted, p) or 0.0 for name, p in columns},
        calibration={name: calibration(converted, p) or 0.0 for name, p in columns},
        learnt={name: sum(rows) for name, rows in found.learnt.items()},
        pauses=found.pauses,
        cpu_seconds=found.cpu_seconds,
    )


def pooled_auc(found: Replayed, rows: npt.NDArray[np.bool_] | None = None) -> AucEstimate:
    """AUCs over windows: only rows of one window are compared, so that no base rate counts.

    Raises:
        SystemExit: when every window has labels of one class only.
    """
    chosen = np.flatnonzero(np.ones(len(found.windows), np.bool_) if rows is None else rows)
    edges = np.flatnonzero(np.diff(found.windows[chosen], prepend=-1, append=-1))
    pooled = pool(
        estimate_auc(found.converted[of], found.scores[of])
        for of in (chosen[first:last] for first, last in itertools.pairwise(edges))
    )
    if pooled is None:
        raise SystemExit("every window has labels of one class only")
    return pooled


def summarised(runs: Sequence[Run]) -> dict[str, Any]:
    """Means over seeds and 95% intervals of differences, by market; what the tables show."""
    markets = dict.fromkeys((run.market, run.guarded) for run in runs)
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seeds": sorted({run.seed for run in runs}),
        "markets": [
            _market([run for run in runs if (run.market, run.guarded) == key], *key)
            for key in markets
        ],
    }


def _market(runs: Sequence[Run], name: str, guarded: bool) -> dict[str, Any]:  # noqa: FBT001
    names = sorted(runs[0].auc, key=lambda each: -_mean([run.auc[each] for run in runs]))
    baselines = [max(SINGLE_TOWERS, key=run.auc.__getitem__) for run in runs]
    pairs = list(zip(runs, baselines, strict=True))
    return {
        "market": name,
        "guarded": guarded,
        "seeds": [run.seed for run in runs],
        "completeness": [min(run.completeness for run in runs), max(r.completeness for r in runs)],
        "cpu_seconds": _mean([run.cpu_seconds for run in runs]),
        "events": round(_mean([run.events for run in runs])),
        "baselines": baselines,
        "variants": {each: _variant(each, pairs) for each in names},
        "pauses": [[run.seed, *pause] for run in runs for pause in run.pauses],
    }


def _variant(name: str, pairs: Sequence[tuple[Run, str]]) -> dict[str, Any]:
    """One variant against the best uncorrected single tower of each seed, picked afterwards."""
    gains = [run.auc[name] - run.auc[baseline] for run, baseline in pairs]
    entropies = [
        run.normalised_entropy[name] - run.normalised_entropy[baseline] for run, baseline in pairs
    ]
    return {
        "auc": _mean([run.auc[name] for run, _ in pairs]),
        "difference": _mean(gains),
        "reach": reach(gains),
        "better": sum(gain > 0 for gain in gains),
        "by_seed": gains,
        "normalised_entropy": _mean([run.normalised_entropy[name] for run, _ in pairs]),
        "entropy_difference": _mean(entropies),
        "entropy_reach": reach(entropies),
        "calibration": _mean([run.calibration[name] for run, _ in pairs]),
        "calibrations": [run.calibration[name] for run, _ in pairs],
    }


def reach(values: Sequence[float]) -> float | None:
    """Half of the 95% t interval of a mean; None of one value."""
    if len(values) < 2:
        return None
    quantile = float(stats.t.ppf(0.975, len(values) - 1))
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
