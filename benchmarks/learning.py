"""Which variant learns best where: generated markets, every variant on the same rows.

    python benchmarks/learning.py --write       # all of it, two hours on two cores
    python benchmarks/learning.py --quick       # two minutes, figures that mean little
    python benchmarks/learning.py --regimes "100% known, incident" --seeds 1 2 --keep /tmp/runs

Each setting of `market_grid.py` is generated anew for each seed, which is the models' seed too. All
variants learn from the same minibatches in one learner, the one that a trainer uses, with the
guard; every event is scored before anything of it is learnt, by the weights at the start of the
window that it happened in, and judged by its complete label. What `forebay check` advises by is
written to mixture/advice/regimes.json with `--write`, of regimes with three seeds or more, and
`make pages` puts that into docs/learning.md. `--keep` names a folder of finished runs: what is in
it is not run again, and `advice_regret.py` reads it; with `--finished` nothing else is run. Runs
with --quick or --model need another folder.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kept_runs import file_name_of, run_all
from learning_figures import Run, figures_of
from learning_page import page_text
from learning_regimes import by_regime, table_of
from market_grid import SETTINGS
from market_replay import replay_market
from variants import train_of, variants

from examples.demo.data.ad_market import generate
from forebay.mixture.advice.regimes import TABLE

SEEDS = (1, 2, 3, 4, 5)
DELAYS = ("head", "fnw")
QUICK_REGIMES = ("49% known, fast drift", "100% known, slow drift")


class Task(NamedTuple):
    """One regime and seed. quick: fewer events and days."""

    regime: str
    seed: int
    quick: bool = False

    @property
    def file_name(self) -> str:
        """Where its figures are kept."""
        return file_name_of(self.regime, self.seed)


def run(task: Task, *, options: dict[str, Any]) -> Run:
    """Figures of one regime and seed."""
    setting = SETTINGS[task.regime]
    if task.quick:
        setting = replace(setting, hourly=125, judged_days=2)
    events = generate(setting.market, task.seed, days=setting.days, hourly=setting.hourly)
    found = replay_market(
        setting.market,
        events,
        train_of(variants(DELAYS), guard=True),
        {"seed": task.seed, **options},
        span=setting.span,
        window_hours=setting.window_hours,
    )
    return figures_of(task.regime, task.seed, found, events.share_known)


def main() -> None:
    arguments = _arguments()
    names = arguments.regimes or (QUICK_REGIMES if arguments.quick else tuple(SETTINGS))
    tasks = [Task(name, seed, arguments.quick) for seed in arguments.seeds for name in names]
    if arguments.finished:
        tasks = [task for task in tasks if (arguments.keep / task.file_name).is_file()]
    job = partial(run, options=arguments.model)
    runs = run_all(job, tasks, arguments.keep, arguments.processes)
    print(page_text(table_of(runs)))
    if arguments.write:
        table = table_of([run for each in by_regime(runs).values() for run in each])
        text = table.model_dump_json(exclude_defaults=True)
        TABLE.write_text(text.replace('{"name"', '\n{"name"') + "\n")  # a line for each regime


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="two minutes instead of an hour")
    parser.add_argument("--regimes", nargs="+", choices=list(SETTINGS), help="default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=None)
    parser.add_argument("--keep", type=Path, help="folder of finished runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--model", type=json.loads, default={}, help="options of the model, JSON")
    parser.add_argument("--write", action="store_true", help="the table that advice is taken from")
    parser.add_argument("--finished", action="store_true", help="only runs that are in --keep")
    arguments = parser.parse_args()
    if arguments.finished and arguments.keep is None:
        parser.error("--finished needs --keep: the folder of the runs")
    if arguments.write and (arguments.quick or arguments.model):
        parser.error("--write: figures of --quick or of other models are no advice")
    arguments.seeds = arguments.seeds or ((1,) if arguments.quick else SEEDS)
    return arguments


if __name__ == "__main__":
    main()
