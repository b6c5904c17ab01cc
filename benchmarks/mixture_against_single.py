"""Where labels are late: the corrected mixture against the best corrected single tower.

    python benchmarks/mixture_against_single.py               # the seeds of the stored table
    python benchmarks/learning.py --keep /tmp/runs --seeds 6 7 8 --regimes …   # those printed
    python benchmarks/mixture_against_single.py /tmp/runs     # and these

The comparison of Primus's Table 6 (Shan et al., USENIX ATC 2025), for regimes in which at most 60%
of the positives are known at publication. Every second seed chooses the better correction of the
mixture and the best corrected single tower, the others measure the difference of their AUC, and the
other way round: nothing is measured by what chose it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from kept_runs import finished_runs
from learning import DELAYS
from learning_regimes import table_of
from variants import CORRECTED

from forebay.mixture.advice.regimes import RegimeTable, measured_regimes
from forebay.mixture.metrics.estimate import over_windows

LATE = 0.6  # share known, at most
MIXTURES = [f"mixture+{delay}" for delay in DELAYS]
SINGLES = [f"{name}+{delay}" for name in CORRECTED if name != "mixture" for delay in DELAYS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("runs", type=Path, nargs="?", help="folder that learning.py --keep filled")
    folder = parser.parse_args().runs
    tables = [measured_regimes(), *([] if folder is None else [table_of(finished_runs(folder))])]
    print("| regime | seeds | difference | mixture | single tower |\n|---|---|---|---|---|")
    for name, aucs in late_regimes(tables).items():
        (ours, our_names), (theirs, their_names) = unseen(aucs, MIXTURES), unseen(aucs, SINGLES)
        mean, reach = over_windows(ours - theirs, [1.0] * len(ours))
        apart = f"{mean:+.4f} ± {reach:.4f}"
        print(f"| {name} | {len(ours)} | {apart} | {our_names} | {their_names} |")


def late_regimes(tables: Sequence[RegimeTable]) -> dict[str, dict[str, np.ndarray]]:
    """Of each late regime the AUC of each variant by seed, one table's seeds after another's."""
    return {
        regime.name: {
            name: np.concatenate([_by_seed(table, regime.name, name) for table in tables])
            for name in (*MIXTURES, *SINGLES)
        }
        for regime in tables[0].regimes
        if regime.completeness <= LATE
    }


def _by_seed(table: RegimeTable, regime: str, variant: str) -> list[float]:
    variants = [one for each in table.regimes if each.name == regime for one in each.variants]
    return [auc for each in variants if each.variant == variant for auc in each.auc_by_seed]


def unseen(aucs: Mapping[str, np.ndarray], among: Sequence[str]) -> tuple[np.ndarray, str]:
    """By seed the AUC of the one that is best in the mean of the other half of the seeds; names."""
    found = np.empty_like(aucs[among[0]])
    bests = []
    for parity in (0, 1):
        best = max(among, key=lambda name: float(aucs[name][1 - parity :: 2].mean()))
        found[parity::2] = aucs[best][parity::2]
        bests.append(best)
    return found, "/".join(dict.fromkeys(bests))


if __name__ == "__main__":
    main()
