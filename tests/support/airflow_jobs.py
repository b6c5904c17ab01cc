"""Jobs that Airflow's tasks started: held in the middle, killed, and looked for afterwards."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from forebay.executors.job.stored_jobs import StoredJob, find_job
from forebay.home.paths import Home
from support.airflow_cluster import Airflow
from support.airflow_pipelines import Pipeline
from support.kills import job_processes, signal_first, used_rows
from support.there import eventually

Json = dict[str, Any]
# The window of time in which a job of some 100,000 rows is in its middle is short.
_LOOK_SECONDS = 0.005


@dataclass(frozen=True)
class WindowJob:
    airflow: Airflow
    pipeline: Pipeline
    number: int
    generation: int = 1

    @property
    def job_id(self) -> str:
        return f"{self.pipeline.name}.main.{self.pipeline.key(self.number)}.g{self.generation}"

    @property
    def folder(self) -> Path:
        return self.airflow.project.home / "jobs" / self.job_id

    def status(self) -> Json:
        job = self._stored()
        found: Json = json.loads(job.row.document) if job is not None else {}
        return found

    def epoch(self) -> int:
        job = self._stored()
        assert job is not None
        return job.row.epoch

    def _stored(self) -> StoredJob | None:
        return find_job(Home(self.airflow.project.home), self.job_id)

    def used_rows(self) -> int:
        key = self.pipeline.key(self.number)
        return used_rows(self.airflow.project, key, self.generation, self.pipeline.name)

    def trainers(self) -> list[int]:
        pids = self.status().get("pids", {})
        return [pid for name, pid in pids.items() if name.startswith("trainer")]

    def wait_for_rows(self, rows: int, seconds: float) -> None:
        def told() -> str:
            only = f"{self.job_id}: only {self.used_rows()} rows after {seconds:g} s"
            return f"{only}\n{self.airflow.diagnosis(self.pipeline)}"

        eventually(lambda: self.used_rows() >= rows, seconds, told, _LOOK_SECONDS)

    def kill(self, role: str) -> int:
        return self._signal(role, signal.SIGKILL)

    @contextmanager
    def held(self, rows: int, seconds: float) -> Iterator[int]:
        """Stop the trainer once it used `rows`; it goes on when the block is left."""
        self.wait_for_rows(rows, seconds)
        pid = self._signal("trainer", signal.SIGSTOP)
        try:
            yield pid
        finally:
            with suppress(ProcessLookupError):  # what the block did may have ended it
                os.kill(pid, signal.SIGCONT)

    def _signal(self, role: str, number: signal.Signals) -> int:
        return signal_first(lambda: self.status().get("pids", {}), role, number, _LOOK_SECONDS)

    def processes(self) -> list[psutil.Process]:
        found = []
        for process in job_processes(self.airflow.project):
            with suppress(psutil.NoSuchProcess):
                if process.environ().get("FOREBAY_JOB_ID") == self.job_id:
                    found.append(process)
        return found
