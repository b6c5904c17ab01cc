"""A part of the embedded Airflow hangs and lives: it is replaced, and runs go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.http import Endpoint
from forebay.embedded.airflow.jobs import left_processes
from forebay.embedded.airflow.rest import AirflowApi
from forebay.home.paths import Home

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

START_SECONDS = 480
PATIENCE_SECONDS = 240
DEADLINE_SECONDS = 45
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


def forebay(home: Home, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "forebay", *words, "--output", "json"],
        env={**os.environ, "FOREBAY_HOME": str(home.root)},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode in {0, 4}, done.stderr
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def components(home: Home) -> dict[str, dict[str, Any]]:
    return {row["component"]: row for row in forebay(home, "status")["components"]}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_a_scheduler_that_hangs_is_replaced_and_a_run_goes_on(tmp_path: Path) -> None:
    home, config = Home(tmp_path / "home"), tmp_path / "config"
    home.root.mkdir(mode=0o700)
    config.mkdir()
    embedded = Embedded(home)
    embedded.layout.create()
    (embedded.layout.dags / "toy.py").write_text(DAG)
    deadline = ("--component-deadline", f"{DEADLINE_SECONDS}s")
    try:
        printed = forebay(home, "up", "--config", str(config), *deadline)
        api = AirflowApi(Endpoint(printed["url"], printed["user"], printed["password"]))
        until(lambda: [dag for dag in api.dags() if dag["dag_id"] == "toy"])
        before = components(home)
        os.kill(before["scheduler"]["pid"], signal.SIGSTOP)
        stopped = time.monotonic()
        run_id = api.trigger("toy", None)["dag_run_id"]
        until(lambda: api.dag_run("toy", run_id)["state"] == "success")
        print(f"run done after {time.monotonic() - stopped:.0f} s, load {os.getloadavg()[0]:.1f}")
        assert time.monotonic() - stopped > DEADLINE_SECONDS / 2  # not before the new one
        after = components(home)
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
