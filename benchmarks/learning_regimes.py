"""The table that advice is taken from, out of what `benchmarks/learning.py` has measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from learning_figures import Run
from market_grid import SETTINGS

from forebay.mixture.advice.regimes import MeasuredVariant, Regime, RegimeTable
from forebay.mixture.metrics.estimate import SEEDS_MIN

COMMAND = "python benchmarks/learning.py --write"


def table_of(runs: Sequence[Run]) -> RegimeTable:
    """One regime for each setting that was run."""
    names = [name for name in SETTINGS if any(run.regime == name for run in runs)]
    return RegimeTable(
        measured=datetime.now(UTC).date(),
        origin="generated markets, every variant on the same rows, scored at the event's time",
        command=COMMAND,
        regimes=tuple(_regime([run for run in runs if run.regime == name]) for name in names),
    )


def by_regime(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs of each regime that has three seeds or more, in the order of the grid."""
    found = {name: [run for run in runs if run.regime == name] for name in SETTINGS}
    return {name: each for name, each in found.items() if len(each) >= SEEDS_MIN}


def _regime(runs: Sequence[Run]) -> Regime:
    setting = SETTINGS[runs[0].regime]
    aucs = [run.auc for run in runs]
    return Regime(
        name=runs[0].regime,
        data=setting.data,
        completeness=float(np.mean([run.completeness for run in runs])),
        stream_share=setting.market.stream_share,
        crowded=setting.is_crowded,
        seeds=len(runs),
        variants=tuple(
            MeasuredVariant(
                variant=name,
                auc=round(float(np.mean([auc[name] for auc in aucs])), 6),
                auc_by_seed=tuple(round(auc[name], 6) for auc in aucs),
                normalised_entropy=_mean([run.normalised_entropy[name] for run in runs]),
                calibration=_mean([run.calibration[name] for run in runs]),
            )
            for name in sorted(runs[0].columns)
        ),
    )


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)
