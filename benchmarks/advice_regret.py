"""How far advice and gate miss the best variant of regimes that the table does not hold.

    python benchmarks/learning.py --keep /tmp/runs
    python benchmarks/advice_regret.py /tmp/runs

Every second seed chooses, the others measure, and the other way round. For each regime the table is
made of runs of the choosing seeds of all regimes whose share of known positives is another one.
What `forebay check` advises by that, from a declared `mixture`, is declared, with `compare: auto`
and the gate; what serves is taken from the eighth window on whose labels are complete by then. The
best variant is chosen by the same seeds on one half of the events of the regime itself, and all are
measured on the other half with the measuring seeds: regret is what is lost against it. With few
seeds that choice is a weak one, and regret may be below 0. A regime fails where the 95% interval
over seeds is above .003.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from kept_runs import finished_runs
from learning_figures import Run
from learning_page import with_block
from learning_regimes import by_regime, table_of
from market_grid import SETTINGS

from forebay.config.checks.rivals import RIVALS_MAX, preferred
from forebay.config.specs.jobs import PublishSpec
from forebay.config.specs.models import VARIANTS
from forebay.config.specs.windows import WindowSize
from forebay.executors.judging.gate import HALF_LIVES, decide
from forebay.mixture.advice.decision import Situation, recommend
from forebay.mixture.advice.regimes import RegimeTable
from forebay.mixture.metrics.estimate import over_windows

PAGE = Path("docs/learning.md")
MARKERS = ("<!-- regret: begin -->", "<!-- regret: end -->")
COMMAND = "python benchmarks/advice_regret.py RUNS"
FAILS = 0.003
LEVEL = 0.05
DECLARED = "mixture"
JUDGED_BEFORE = 7  # windows with all their labels, before what serves is measured


class Line(NamedTuple):
    """How a replayed line waits. horizon_windows: until the labels of a window are complete."""

    horizon_windows: int
    size: WindowSize


class Interval(NamedTuple):
    mean: float
    reach: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """A mean and half of its 95% t interval."""
        return cls(*over_windows(values, [1.0] * len(values)))

    @property
    def words(self) -> str:
        return f"{self.mean:+.4f} ± {self.reach:.4f}"


@dataclass(frozen=True)
class Found:
    """Of one regime: what is advised and what it loses, what serves loses, how calibrated it is."""

    regime: str
    advised: str
    best: str
    advice: Interval
    served: Interval
    calibration: Interval
    serves_most: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("runs", type=Path, help="folder that learning.py --keep has filled")
    runs = by_regime(finished_runs(parser.parse_args().runs))
    table = table_of([run for each in runs.values() for run in each])
    choosing = [
        table_of([run for each in runs.values() for run in each[parity::2]]) for parity in (0, 1)
    ]
    found = [regret(each, held_out(each, choosing), line_of(name)) for name, each in runs.items()]
    text = page_text(table, found)
    PAGE.write_text(with_block(PAGE, MARKERS, text))
    print(text)
    print(table_text(found))


def line_of(regime: str) -> Line:
    setting = SETTINGS[regime]
    size = WindowSize.HOUR if setting.window_hours == 1 else WindowSize.DAY
    return Line(setting.horizon_windows, size)


def held_out(runs: Sequence[Run], choosing: Sequence[RegimeTable]) -> list[str]:
    """What each table of `choosing` advises for a regime without any that is about as late."""
    regime = table_of(runs).regimes[0]
    data = Situation(regime.completeness, regime.stream_share, crowded=regime.crowded)
    return [advised_for(data, without_level(table, regime.completeness)) for table in choosing]


def page_text(table: RegimeTable, found: Sequence[Found]) -> str:
    """What is lost over all regimes."""
    sure = [one.calibration for one in found if one.calibration.reach <= 0.05]
    right = sum(abs(one.mean - 1) <= 0.05 for one in sure)
    lines = [
        f"Measured on {table.measured}: `{COMMAND}`.",
        "",
        summary("What is advised", [one.advice for one in found]),
        summary("What serves", [one.served for one in found]),
        f"Its calibration is within 5% in {right} of the {len(sure)} regimes whose interval is.",
    ]
    return "\n".join(lines)


def table_text(found: Sequence[Found]) -> str:
    """What is lost in each regime."""
    lines = ["| regime | best | advised | loses | served | loses | calibration |"]
    lines.append("|---|---|---|---|---|---|---|")
    lines += [
        f"| {one.regime} | {one.best} | {one.advised} | {one.advice.words} | "
        f"{one.serves_most} | {one.served.words} | {one.calibration.words} |"
        for one in found
    ]
    return "\n".join(lines)


def without_level(table: RegimeTable, completeness: float) -> RegimeTable:
    """The table without the regimes in which about as many positives are known."""
    others = [each for each in table.regimes if abs(each.completeness - completeness) >= LEVEL]
    return table.model_copy(update={"regimes": tuple(others)})


def regret(runs: Sequence[Run], advised: Sequence[str], line: Line) -> Found:
    """What advice and gate lose in one regime. advised: by either half of the seeds."""
    since = JUDGED_BEFORE + line.horizon_windows
    bests = list(best_elsewhere(runs))
    declared = [advised[parity] for parity, _, _ in bests]
    pairs = list(zip(bests, declared, strict=True))
    served = [list(_served(run, variant, line)) for (_, run, _), variant in pairs]
    advice = [
        run.auc_of_half(1)[best] - run.auc_of_half(1)[variant] for (_, run, best), variant in pairs
    ]
    serving = [
        run.auc_of_half(1, since)[best] - _auc_of(run, choices, since)
        for (_, run, best), choices in zip(bests, served, strict=True)
    ]
    calibrations = [
        _calibration(run, choices, since)
        for (_, run, _), choices in zip(bests, served, strict=True)
    ]
    late = [choice for choices in served for choice in choices[since:]]
    return Found(
        regime=runs[0].regime,
        advised="/".join(dict.fromkeys(declared)),
        best="/".join(dict.fromkeys(best for _, _, best in bests)),
        advice=Interval.of(advice),
        served=Interval.of(serving),
        calibration=Interval.of(calibrations),
        serves_most=max(set(late), key=late.count),
    )


def advised_for(data: Situation, table: RegimeTable, declared: str = DECLARED) -> str:
    """What is advised for data."""
    found = recommend(data, declared, table)
    return declared if found is None else found.variant


def best_elsewhere(runs: Sequence[Run]) -> Iterator[tuple[int, Run, str]]:
    """Each run, the best variant of the first half of events by the choosing seeds, and which."""
    for parity in (0, 1):
        chosen, measured = runs[parity::2], runs[1 - parity :: 2]
        aucs = [run.auc_of_half(0) for run in chosen]
        means = {name: float(np.mean([auc[name] for auc in aucs])) for name in aucs[0]}
        best = max(means, key=means.__getitem__)
        yield from ((parity, run, best) for run in measured)


def _served(run: Run, declared: str, line: Line) -> Iterator[str]:
    """What the gate lets serve in each window: it knows those whose labels are complete."""
    found = preferred(VARIANTS[declared], warm_start=True)
    rivals = [each.name for each in found[:RIVALS_MAX]]
    figures, serving = run.figures(), declared
    for window in range(len(figures)):
        judged = figures[: max(0, window - line.horizon_windows)]
        spec = PublishSpec(when="gate")
        half_life = HALF_LIVES[line.size]
        serving = decide(spec, [declared, *rivals], judged, serving, half_life).variant
        yield serving


def _auc_of(run: Run, choices: Sequence[str], since: int) -> float:
    """Of the second half of the events, each window answered by its own choice."""
    places = [run.columns.index(name) + 1 for name in choices]
    parts = [(each[1][0], each[1][at]) for each, at in zip(run.halves, places, strict=True)]
    pairs, aucs = np.array(parts[since:]).T
    return float(np.average(aucs, weights=pairs))


def _calibration(run: Run, choices: Sequence[str], since: int) -> float:
    figures = list(zip(run.figures(), choices, strict=True))[since:]
    judged = [(one, run.columns.index(name)) for one, name in figures if one.positives]
    expected = sum(float(one.expected[at]) for one, at in judged)
    return expected / sum(one.positives for one, _ in judged)


def summary(what: str, found: Sequence[Interval]) -> str:
    """The mean over regimes, and how many fail."""
    fails = [one for one in found if one.mean - one.reach > FAILS]
    mean = np.mean([one.mean for one in found])
    return (
        f"{what} loses {mean:+.4f} in the mean of {len(found)} regimes, and at most "
        f"{max(one.mean for one in found):.4f}; in {len(fails)} ({len(fails) / len(found):.0%}) "
        f"surely more than {FAILS}."
    )


if __name__ == "__main__":
    main()
