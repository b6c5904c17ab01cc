"""A part of the embedded Airflow hangs and lives: it is replaced, and runs go on."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.projects import Project

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.http import Endpoint
from forebay.embedded.airflow.jobs import left_processes
from forebay.embedded.airflow.rest import AirflowApi
from forebay.embedded.keeper.heartbeats import LOOK_SECONDS, STARTING_SECONDS
from forebay.errors import InfrastructureError
from forebay.home.paths import Home

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(2400)]

START_SECONDS = 480
DEADLINE_SECONDS = 60
# What hangs before its first sign of life was seen is given longer.
PATIENCE_SECONDS = STARTING_SECONDS + 300
# On a busy machine a start may be given up; the next one has less to do.
STARTS = 3
DAG = '''\
"""An Airflow DAG with one short task."""

from airflow.sdk import dag, task


@dag(dag_id="toy", schedule=None)
def toy():
    @task
    def only() -> int:
        return 7

    only()


toy()
'''


def up(project: Project, *words: str) -> dict[str, Any]:
    words = ("up", *words, "--output", "json")
    for _ in range(STARTS):
        done = project.forebay(*words, check=False, timeout_seconds=START_SECONDS)
        if done.returncode == 0:
            break
        print(f"load {os.getloadavg()[0]:.1f}: {done.stderr}")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def components(project: Project) -> dict[str, dict[str, Any]]:
    told = project.forebay("status", "--output", "json", check=False)
    assert told.returncode in {0, 4}, told.stderr
    return {row["component"]: row for row in json.loads(told.stdout)["components"]}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if condition():
                return
        except InfrastructureError as error:
            print(f"asked again: {error}")  # a busy machine
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.guarantee(
    "a part of Airflow (scheduler, triggerer, DAG processor, API server) hangs",
    "nothing; as if it had died",
)
def test_a_scheduler_that_hangs_is_replaced_and_a_run_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.home.mkdir(mode=0o700)
    (tmp_path / "config").mkdir()
    embedded = Embedded(Home(project.home))
    embedded.layout.create()
    (embedded.layout.dags / "toy.py").write_text(DAG)
    deadline = ("--component-deadline", f"{DEADLINE_SECONDS}s")
    try:
        printed = up(project, "--config", "config", *deadline)
        api = AirflowApi(Endpoint(printed["url"], printed["user"], printed["password"]))
        until(lambda: [dag for dag in api.dags() if dag["dag_id"] == "toy"])
        api.pause("toy", paused=False)
        time.sleep(3 * LOOK_SECONDS)  # the keeper has seen each part alive by now
        before = components(project)
        os.kill(before["scheduler"]["pid"], signal.SIGSTOP)
        stopped = time.monotonic()
        run_id = api.trigger("toy", None)["dag_run_id"]
        until(lambda: api.dag_run("toy", run_id)["state"] == "success")
        print(f"run done after {time.monotonic() - stopped:.0f} s, load {os.getloadavg()[0]:.1f}")
        assert time.monotonic() - stopped > DEADLINE_SECONDS / 2  # not before it was found
        # What is merely stopped works again while it writes its stacks; the new one works too.
        until(lambda: components(project)["scheduler"]["restarts"] == 1)
        again = api.trigger("toy", None)["dag_run_id"]
        until(lambda: api.dag_run("toy", again)["state"] == "success")
        after = components(project)
        scheduler = after.pop("scheduler")
        assert scheduler["pid"] != before["scheduler"]["pid"]
        assert (scheduler["hangs"], scheduler["restarts"]) == (1, 1)
        assert "hung: no sign of life for " in scheduler["hung"]
        # Those that were well were left alone, on a machine that was busy with all this.
        assert {name: (row["pid"], row["hangs"]) for name, row in after.items()} == {
            name: (row["pid"], 0) for name, row in before.items() if name != "scheduler"
        }
        stacks = embedded.layout.log("scheduler").read_text()
        assert "most recent call first" in stacks
        assert "scheduler_job_runner.py" in stacks
    finally:
        embedded.stop()
        embedded.remove_database()
        assert left_processes(embedded.layout) == []
