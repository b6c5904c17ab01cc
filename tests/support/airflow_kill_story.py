"""SIGKILL in the middle of a backfill: windows end green, sums stay exact, nothing is left."""

from __future__ import annotations

import json
import time
from typing import Any

import psutil
import pytest

from support.airflow_cluster import Airflow, Run
from support.airflow_endings import done
from support.airflow_jobs import WindowJob
from support.airflow_pipelines import KILLS, WINDOW_SECONDS
from support.airflow_plugin import Tell, Timed
from support.airflow_processes import gone, kill_component, kill_task
from support.airflow_truth import assert_exact, assert_in_order

Json = dict[str, Any]
TRAINING = "training_executors"
# What the design promises: from the death of a component to its tasks going on.
TASKS_BACK_SECONDS = 90
HELD_AT_ROWS = 60_000


class Attempt:
    def __init__(self, airflow: Airflow, run: Run, job: WindowJob) -> None:
        """Waits until the task runs in a worker."""
        self._airflow, self._run, self._job = airflow, run, job
        self.task: Json = airflow.task_is(KILLS, run, TRAINING, "running", WINDOW_SECONDS)
        self._number = self.task["try_number"]
        self._epoch = job.epoch()

    def attaches_again(self, tell: Tell, after: str) -> None:
        """Wait for the next attempt: the same job, a higher epoch."""
        began = time.monotonic()

        def attached() -> Json | None:
            task = self._airflow.api.task_instance(KILLS.name, self._run.run_id, TRAINING)
            runs = task["try_number"] > self._number and task["state"] == "running"
            return task if runs and self._job.epoch() > self._epoch else None

        what = f"the next attempt attached to {self._job.job_id}"
        self.task = self._airflow.until(what, attached, TASKS_BACK_SECONDS, KILLS)
        tell(f"{time.monotonic() - began:7.1f} s  from {after} to its task's next attempt")
        self._number, self._epoch = self.task["try_number"], self._job.epoch()
        assert self._job.status()["state"] == "running"


class KillStory:
    @pytest.mark.guarantee(
        "Airflow's triggerer dies", "nothing; deferred tasks are taken over in the same attempt"
    )
    @pytest.mark.guarantee(
        "Airflow's scheduler dies",
        "nothing; its workers end with it, the job continues, and the next attempt attaches to it",
    )
    @pytest.mark.guarantee(
        "an Airflow worker under a task dies",
        "nothing; the job continues, and the next attempt attaches to it with a higher epoch",
    )
    def test_kills_of_airflow_while_a_window_trains(
        self, airflow: Airflow, timed: Timed, tell: Tell
    ) -> None:
        airflow.backfill(KILLS, 0, 1)
        job, run = WindowJob(airflow, KILLS, 0), airflow.run_of(KILLS, 0)
        with (
            timed("SIGKILL of a task's process, the scheduler and triggerer"),
            job.held(HELD_AT_ROWS, WINDOW_SECONDS) as trainer,
        ):
            attempt = Attempt(airflow, run, job)
            left: list[psutil.Process] = kill_task(attempt.task)
            attempt.attaches_again(tell, "a task's SIGKILL")
            scheduler = kill_component(airflow, "scheduler", KILLS)
            tell(f"{scheduler.back_seconds:7.1f} s  from a scheduler's SIGKILL to the next one")
            attempt.attaches_again(tell, "a scheduler's SIGKILL")
            assert gone([*left, *scheduler.below]) == []
            airflow.task_is(KILLS, run, TRAINING, "deferred", TASKS_BACK_SECONDS)
            triggerer = kill_component(airflow, "triggerer", KILLS)
            tell(f"{triggerer.back_seconds:7.1f} s  from a triggerer's SIGKILL to the next one")
        assert job.trainers() == [trainer], "the job did not go on as it was"
        assert_unbroken(job)

    @pytest.mark.guarantee(
        "the driver or the trainer of a job that Airflow submitted dies",
        "as above; read again: as above",
    )
    def test_kills_of_the_job_while_the_next_window_trains(
        self, airflow: Airflow, timed: Timed
    ) -> None:
        jobs = [WindowJob(airflow, KILLS, number) for number in range(2)]
        with timed("SIGKILL of driver and trainer, and the end of the backfill"):
            for role, rows in (("driver", 50_000), ("trainer", 120_000)):
                jobs[1].wait_for_rows(rows, WINDOW_SECONDS)
                jobs[1].kill(role)
            runs = airflow.ended(KILLS, {0: "success", 1: "success"}, WINDOW_SECONDS)
        assert [airflow.states(run) for run in runs.values()] == [done(KILLS)] * 2
        assert_exact(airflow.project, KILLS, range(2))
        assert_in_order(airflow.project, KILLS, range(2))
        assert_unbroken(jobs[0])
        restarts = jobs[1].status()["restarts"]
        assert restarts == {"supervisor": 0, "driver": 1, "data": 0, "trainer": 1}
        assert [process for job in jobs for process in job.processes()] == []

    def test_the_log_of_training_tells_its_progress(self, airflow: Airflow) -> None:
        """Of the window that was held: a line every ten seconds while somebody follows it."""
        run = airflow.run_of(KILLS, 0)
        last = airflow.tasks(run)[TRAINING]["try_number"]
        lines = airflow.log(run, TRAINING, last).splitlines()
        progress = [line for line in lines if "lag" in line]
        assert len(progress) >= 2, lines
        held = [line for line in progress if "no step for" in line]
        assert held, progress
        words = (f"window {KILLS.key(0)}", "many_history", "many_clicks", "sealed at")
        assert [word for word in words if word not in held[-1]] == [], held[-1]


def assert_unbroken(job: WindowJob) -> None:
    restarts = job.status()["restarts"]
    assert restarts == dict.fromkeys(("supervisor", "driver", "data", "trainer"), 0)
    progress = json.loads((job.folder / "progress.json").read_text())
    assert progress["window"] == job.pipeline.key(job.number)
