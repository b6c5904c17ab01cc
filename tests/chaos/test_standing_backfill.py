"""A backfill of 48 hours on a line whose processes stay, in an Airflow where everything dies.

Runner, driver, data executor, trainer, the process that plans, scheduler and triggerer, at random;
in between, users mark runs failed, clear and delete them, pause the DAG and edit its YAML.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from urllib.parse import quote

import psutil
import pytest
from support.airflow_cluster import Airflow, Run
from support.airflow_pipelines import HOURS
from support.airflow_plugin import Tell
from support.airflow_processes import kill_component, processes_of
from support.airflow_truth import assert_exact, link
from support.standing import processes, runner_of
from support.there import until

from forebay.errors import InfrastructureError
from forebay.executors.job.runners import end_runner

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3000)]
KILLS = 40
SEED = 20261129
JOB = {"process": "standing", "failover": {"restarts_max": 50}}
LINE = replace(
    HOURS,
    name="standing",
    schedule={"grace": "10s", "retry_delay": "2s"},
    spec={"job": JOB, "train": {"minibatch_rows": 8}},
)
CHANGED = replace(LINE, spec={"job": JOB, "train": {"minibatch_rows": 16}})
NUMBERS = range(48)
ALL_SECONDS, MENDED_SECONDS = 1800, 30
ROLES = ("supervisor", "driver", "data_executor", "trainer")
COMPONENTS = ("scheduler", "triggerer")
VICTIMS = (*ROLES * 3, *("stages",) * 3, *COMPONENTS)


@dataclass
class Storm:
    """What happened so far, each drawn from one seed."""

    airflow: Airflow
    chosen: random.Random = field(default_factory=lambda: random.Random(SEED))
    done: Counter[str] = field(default_factory=Counter)

    def kill(self) -> None:
        victim = self.chosen.choice(VICTIMS)
        if victim in COMPONENTS:
            kill_component(self.airflow, victim, LINE)
        elif not self._kill_process(victim):
            return
        self.done[victim] += 1

    def _kill_process(self, victim: str) -> bool:
        found = processes(self.airflow.project, LINE.name)
        with suppress(KeyError, ProcessLookupError):
            os.kill(self._planner() if victim == "stages" else found[victim], signal.SIGKILL)
            return True
        return False

    def _planner(self) -> int:
        for each in processes_of(self.airflow):
            with suppress(psutil.Error):
                if "forebay.stages" in each.cmdline():
                    return each.pid
        raise KeyError("stages")

    def meddle(self) -> None:
        ways: dict[str, Callable[[Run], object]] = {
            "mark failed": lambda run: self.airflow.api.set_run_state(
                LINE.name, run.run_id, "failed"
            ),
            "clear": lambda run: self.airflow.api.clear(LINE.name, run.run_id),
            "delete": self._delete,
            "pause": lambda _run: self._pause(),
            "edit": lambda _run: self._edit(),
        }
        name = self.chosen.choice(sorted(ways))
        runs = [run for run in self.airflow.runs(LINE) if run.state != "success"]
        if runs:
            with suppress(InfrastructureError):  # the run ended meanwhile
                ways[name](self.chosen.choice(runs[:4]))
                self.done[name] += 1

    def _delete(self, run: Run) -> None:
        path = f"/dags/{LINE.name}/dagRuns/{quote(run.run_id)}"
        self.airflow.http._authorised("DELETE", path)

    def _pause(self) -> None:
        self.airflow.api.pause(LINE.name, paused=True)
        time.sleep(5)
        self.airflow.api.pause(LINE.name, paused=False)

    def _edit(self) -> None:
        (CHANGED if self.done["edit"] % 2 == 0 else LINE).write(self.airflow.project)

    @property
    def kills(self) -> int:
        return sum(self.done[each] for each in {*VICTIMS})


def test_forty_kills_of_a_backfill_on_a_line_that_stays(airflow: Airflow, tell: Tell) -> None:
    LINE.write(airflow.project)
    airflow.unpause(LINE)
    airflow.backfill(LINE, NUMBERS[0], NUMBERS[-1])
    storm, began = Storm(airflow), time.monotonic()
    airflow.until("a runner", lambda: processes(airflow.project, LINE.name), 120, LINE)
    mended = began
    while storm.kills < KILLS:
        assert time.monotonic() - began < ALL_SECONDS, storm.done
        time.sleep(storm.chosen.uniform(0.1, 4))
        storm.kill()
        if storm.chosen.random() < 0.3:
            storm.meddle()
        if time.monotonic() - mended > MENDED_SECONDS:  # behind a deleted run nothing is trained
            _mend(airflow)
            mended = time.monotonic()
    tell(f"{time.monotonic() - began:7.1f} s  {dict(storm.done)}")
    _bring_to_an_end(airflow)
    tell(f"{time.monotonic() - began:7.1f} s  until the last of the 48 windows was green")
    assert_exact(airflow.project, LINE, NUMBERS)
    for before, number in pairwise(NUMBERS):
        assert link(airflow.project, LINE, number)["parent"]["window"] == LINE.key(before)
    assert set(storm.done) >= {*VICTIMS}
    airflow.project.forebay("home", "check")
    end_runner(runner_of(airflow.project, LINE.name))
    assert until(lambda: not processes(airflow.project, LINE.name), 20)


def _bring_to_an_end(airflow: Airflow) -> None:
    asked: set[str] = set()

    def all_green() -> bool:
        red = _mend(airflow, asked)
        if red & asked:
            raise AssertionError(airflow.diagnosis(LINE))
        asked.update(red)
        runs = airflow.runs(LINE)
        return len(runs) >= len(NUMBERS) and {run.state for run in runs} == {"success"}

    airflow.until("all windows are green", all_green, ALL_SECONDS, LINE)


def _mend(airflow: Airflow, asked: Collection[str] = ()) -> set[str]:
    """As a user does: clear what is red, unless it was before, and start what was deleted."""
    runs = {run.window: run for run in airflow.runs(LINE)}
    red = {run.run_id for run in runs.values() if run.state == "failed"}
    for name in sorted(red - {*asked}):
        airflow.api.clear(LINE.name, name)
    for number in NUMBERS:
        if LINE.window(number) not in runs:
            airflow.trigger(LINE, LINE.window(number))
    return red
