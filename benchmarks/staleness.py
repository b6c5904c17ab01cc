"""Model quality over lag, as Fig. 1 of KALE: a stream that is held back, on a generated market.

    python benchmarks/staleness.py              # all of it, some four minutes on one core
    python benchmarks/staleness.py --seeds 1 --drifts fast

What holds the stream back is this replay: there is no broker, and no window that is open. Events of
a market without late labels (`examples/demo/data/ad_market.py`, 6,000 an hour) are scored when they
happen, two minutes of them at a time, by the models as they are then, and learnt as stream rows
once the lag has gone by. Their complete rows are learnt as history a day later at every lag, so
that `mixture/memory`, which learns from history alone, shows what the lag does not touch: its
differences are 0. Every lag goes on from the same warm start of four days; the eight hours after it
are learnt and not judged, the day after them is: 144,000 events a seed.

`newest row` is how old the newest stream row was, in the mean over judged events, that the models
had learnt when they scored. AUC compares only events of one hour with each other, as everywhere
else. Tastes drift in steps, on the hour, and forget within hours (fast) or days (slow). Means and
standard errors are over seeds: differences are those of one seed's lag to the same seed's lag 0.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from learning_figures import pooled_auc
from market_grid import FAST, SLOW
from market_replay import HISTORY_HOURS, HOUR_US, START_US, prepared
from replay import Feeds, Replayed, Span, minibatches, part
from variants import train_of

from examples.demo.data.ad_market import HORIZON, Market, generate
from forebay.mixture.learner import Learner

LAGS = (0, 10, 20, 60, 180)  # minutes
DRIFTS: dict[str, dict[str, Any]] = {"fast": FAST, "slow": SLOW}
SEEDS = (1, 2, 3, 4, 5)
TRAIN = train_of([{"paradigm": "mixture"}, {"paradigm": "stream"}])
HOURLY, TICK = 6_000, 2  # events, minutes
TICKS = 60 // TICK  # an hour
WARM, JUDGED, END = 96, 104, 128  # hours
DAY = HORIZON // timedelta(minutes=TICK)  # ticks after which an event is history
SPAN = Span(windows=END, warm=WARM, judged_from=JUDGED, unread=HISTORY_HOURS)


class Held(NamedTuple):
    """One seed's stream at one lag: minutes, and AUC by score column."""

    newest_row: float
    auc: dict[str, float]


def warmed(market: Market, seed: int, keep: Path) -> tuple[Learner, Feeds]:
    """A learner after its warm start, which is saved in `keep`."""
    events = generate(market, seed, days=-(-END // 24), hourly=HOURLY)
    learner, feeds = prepared(market, events, TRAIN, {"seed": seed})
    for window in range(WARM):
        learner.set_phase(SPAN.phase(window))
        for _, minibatch in minibatches(feeds, window):
            learner.learn(minibatch)
    learner.save(keep)
    learner.set_phase("window")
    return learner, feeds


def held_back(learner: Learner, feeds: Feeds, lag: int) -> Held:
    """Score the events of each tick, then learn what is due: history, and the stream of before."""
    stream, times = feeds.stream, feeds.stream.event_times
    assert times is not None
    late, first, judged, ticks = lag // TICK, WARM * TICKS, JUDGED * TICKS, END * TICKS
    borders = START_US + np.arange(ticks + 1) * (HOUR_US // TICKS)
    edges = np.searchsorted(times, borders).tolist()
    scores, ages = [], []
    for tick in range(first, ticks):
        rows, due = slice(*edges[tick : tick + 2]), edges[tick - late : tick - late + 2]
        if tick >= judged:
            scores.append(learner.score(part(feeds.events, rows.start, rows.stop)))
            ages.append(times[rows] - times[due[0] - 1])
        learner.learn(part(feeds.history, *edges[tick - DAY : tick - DAY + 2]))
        if tick - late >= first:
            learner.learn(part(stream, *due))
    rows = slice(edges[judged], edges[ticks])
    names = tuple(column.name for column in learner.columns)
    found = Replayed(
        columns=names,
        windows=feeds.event_windows[rows],
        converted=feeds.converted[rows],
        scores=np.concatenate(scores),
        learnt=learner.learnt(),
        pauses=[],
        cpu_seconds=0.0,
    )
    auc = dict(zip(names, pooled_auc(found).values.tolist(), strict=True))
    return Held(float(np.concatenate(ages).mean()) / 60e6, auc)


def seed_at_all_lags(drift: str, seed: int) -> list[Held]:
    """One for each of LAGS, all from the same warm start."""
    market = Market(wait=timedelta(0), **DRIFTS[drift])
    with tempfile.TemporaryDirectory() as folder:
        learner, feeds = warmed(market, seed, Path(folder))
        found = []
        for lag in LAGS:
            learner.load(Path(folder))
            found.append(held_back(learner, feeds, lag))
    return found


def mean_and_error(values: list[float], form: str) -> str:
    error = f" ± {stdev(values) / math.sqrt(len(values)):.4f}" if len(values) > 1 else ""
    return f"{fmean(values):{form}}{error}"


def table_of(drift: str, seeds: list[list[Held]]) -> str:
    """AUC at lag 0, and how much less or more it is at the other lags."""
    names = list(seeds[0][0].auc)
    lines = [
        f"tastes that drift {drift}:",
        "",
        f"| lag | newest row | {' | '.join(f'`{name}`' for name in names)} |",
        "|---" * (2 + len(names)) + "|",
    ]
    for place, lag in enumerate(LAGS):
        cells = [f"{lag} min", f"{fmean(held[place].newest_row for held in seeds):.0f} min"]
        for name in names:
            own = [held[place].auc[name] for held in seeds]
            if place == 0:
                cells.append(mean_and_error(own, ".4f"))
                continue
            base = [held[0].auc[name] for held in seeds]
            differences = [one - other for one, other in zip(own, base, strict=True)]
            cells.append(mean_and_error(differences, "+.4f"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--drifts", nargs="+", choices=list(DRIFTS), default=list(DRIFTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    asked = parser.parse_args()
    for drift in asked.drifts:
        print(table_of(drift, [seed_at_all_lags(drift, seed) for seed in asked.seeds]), end="\n\n")
    print(f"{len(asked.seeds)} seeds, {time.process_time():.0f} CPU seconds in all")


if __name__ == "__main__":
    main()
