"""Which paradigm learns best where: generated markets, hourly windows, every variant, many seeds.

    python benchmarks/learning.py               # all of it, on two cores
    python benchmarks/learning.py --quick       # two minutes, figures that mean little
    python benchmarks/learning.py --markets incident drift --seeds 1 2 --keep /tmp/runs

Each market of `examples.demo.data.ad_market` is generated anew for each seed, which is the models'
seed too. All variants learn from the same minibatches in one learner, the one that a trainer uses;
every event is scored before anything of it is learnt, by the weights of the hour that it happened
in, and judged by its complete label. A market whose labels stop coming for hours is run twice, once
with the guard. All figures go to mixture/metrics/learning.json, and from there what `forebay check`
advises by to mixture/advice/regimes.json, whose tables `make pages` puts into docs/learning.md; all
stay as they are with --quick, or with fewer markets. `--keep` names a folder of finished runs: what
is in it is not run again, and with `--finished` nothing else is.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from learning_figures import Run, figures_of, summarised
from learning_page import page_text
from learning_regimes import FIGURES, table_of, write_table
from market_replay import DAYS, HISTORY_HOURS, SPAN, replay_market
from replay import Span
from variants import train_of, variants

from examples.demo.data.ad_market import MARKETS, generate

SEEDS = (1, 2, 3, 4, 5)
HOURLY = 2_000
# What the tables show; `--markets` runs the others too.
REGIMES = ("late conversions", "incident", "sparse stream", "drift", "collisions", "complete")
DELAYS = ("head", "fnw")
# Days, what of them is learnt and judged, events an hour, corrections.
QUICK = (4, Span(4 * 24, 2 * 24, 2 * 24, HISTORY_HOURS), 250, DELAYS[:1])


class Task(NamedTuple):
    """One run of a market; with `guard`, learning pauses where labels stop coming."""

    market: str
    seed: int
    guard: bool
    days: int = DAYS
    span: Span = SPAN
    hourly: int = HOURLY
    delays: tuple[str, ...] = DELAYS

    @property
    def file_name(self) -> str:
        """Where its figures are kept."""
        return f"{'guarded-' * self.guard}{self.market.replace(' ', '-')}-{self.seed}.json"


def run(task: Task, options: dict[str, Any]) -> Run:
    """Figures of one market and seed."""
    market = MARKETS[task.market]
    events = generate(market, task.seed, days=task.days, hourly=task.hourly)
    model = {"seed": task.seed, **options}
    train = train_of(variants(task.delays), guard=task.guard)
    found = replay_market(market, events, train, model, span=task.span)
    return figures_of(task.market, task.seed, found, events.share_known, guarded=task.guard)


def main() -> None:
    arguments = _arguments()
    names = arguments.markets or REGIMES
    size = QUICK if arguments.quick else ()
    tasks = [
        Task(name, seed, guard, *size)
        for seed in arguments.seeds
        for name in names
        for guard in ((False, True) if MARKETS[name].outages else (False,))
    ]
    if arguments.finished:
        tasks = [task for task in tasks if (arguments.keep / task.file_name).is_file()]
    with ProcessPoolExecutor(
        arguments.processes, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        runs = _run_all(pool, tasks, arguments)
    found = summarised(runs)
    print(page_text(table_of(found)))
    if arguments.quick or arguments.markets:
        return
    FIGURES.write_text(json.dumps(found, indent=1) + "\n")
    write_table(found)


def _run_all(
    pool: ProcessPoolExecutor,
    tasks: list[Task],
    arguments: argparse.Namespace,
) -> list[Run]:
    began = time.monotonic()
    runs, missing = [], []
    for task in tasks:
        file = arguments.keep / task.file_name if arguments.keep else None
        if file is not None and file.is_file():
            runs.append(Run(**json.loads(file.read_text())))
        else:
            missing.append((task, file, pool.submit(run, task, arguments.model)))
    for task, file, future in missing:
        runs.append(future.result())
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(runs[-1]._asdict()))
        print(f"{time.monotonic() - began:6.0f} s  {task.file_name}", file=sys.stderr)
    return runs


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="two minutes instead of an hour")
    parser.add_argument(
        "--markets", nargs="+", choices=list(MARKETS), help=f"default: {', '.join(REGIMES)}"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=None)
    parser.add_argument("--keep", type=Path, help="folder of finished runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--model", type=json.loads, default={}, help="options of the model, JSON")
    parser.add_argument("--finished", action="store_true", help="only runs that are in --keep")
    arguments = parser.parse_args()
    if arguments.finished and arguments.keep is None:
        parser.error("--finished needs --keep: the folder of the runs")
    arguments.seeds = arguments.seeds or ((1,) if arguments.quick else SEEDS)
    return arguments


if __name__ == "__main__":
    main()
