"""The database away for more than a minute while a window trains in a real Airflow.

Its facts are on a PostgreSQL server of their own, not on Airflow's.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest
from support import airflow_data
from support.airflow_cluster import Airflow
from support.airflow_endings import done
from support.airflow_jobs import WindowJob
from support.airflow_kill_story import HELD_AT_ROWS, TRAINING, assert_unbroken
from support.airflow_pipelines import KILLS, SOURCES, WINDOW_SECONDS
from support.airflow_truth import assert_exact, assert_in_order
from support.postgres_server import PostgresServer
from support.projects import Project

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]
AWAY_SECONDS = 65.0
WINDOWS = 2


@pytest.fixture(scope="module")
def airflow(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Airflow]:
    project = Project(tmp_path_factory.mktemp("airflow"))
    airflow_data.write_many(project.root, WINDOWS)
    for name in KILLS.sources:
        project.write_source(name, SOURCES[name])
    KILLS.write(project)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREBAY_DATABASE", postgres_server.new_database())
        found = Airflow(project)
        try:
            found.up()
            found.unpause(KILLS)
            yield found
        finally:
            found.down("--remove-database")


@pytest.mark.guarantee(
    "the database is away for longer than a minute, under Airflow",
    "nothing; triggers wait and no task fails",
)
def test_triggers_wait_and_no_task_fails(airflow: Airflow, postgres_server: PostgresServer) -> None:
    airflow.backfill(KILLS, 0, WINDOWS - 1)
    job = WindowJob(airflow, KILLS, 0)
    job.wait_for_rows(1, WINDOW_SECONDS)
    run = airflow.run_of(KILLS, 0)
    with job.held(HELD_AT_ROWS, WINDOW_SECONDS) as trainer:
        airflow.task_is(KILLS, run, TRAINING, "deferred", WINDOW_SECONDS)
        postgres_server.stop(signal.SIGKILL)
        try:
            time.sleep(AWAY_SECONDS)
            task = airflow.api.task_instance(KILLS.name, run.run_id, TRAINING)
            assert task["state"] == "deferred", airflow.diagnosis(KILLS)
        finally:
            postgres_server.start()
        assert job.trainers() == [trainer]
    runs = airflow.ended(KILLS, dict.fromkeys(range(WINDOWS), "success"), WINDOW_SECONDS)
    assert [airflow.states(each) for each in runs.values()] == [done(KILLS)] * WINDOWS
    assert airflow.tasks(runs[0])[TRAINING]["try_number"] == 1
    assert_unbroken(job)
    assert_exact(airflow.project, KILLS, range(WINDOWS))
    assert_in_order(airflow.project, KILLS, range(WINDOWS))
