"""Jobs of toy roles for tests."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.request import JobRequest, JobStatus
from forebay.executors.job.submit import submit
from forebay.home.paths import Home
from support.there import eventually

TESTS = Path(__file__).parents[2]
SUPERVISOR = (sys.executable, "-P", "-m", "support.toy_roles.supervisor")
PIPELINE = {
    "name": "ads",
    "dataset": {
        "start": "2026-03-01",
        "event_id": "event",
        "label": {"column": "clicked"},
        "streams": {"history": {"sources": ["clicks"], "offset": "24h"}},
        "features": {"price": {"encode": "numeric", "column": "price"}},
    },
}
SOURCE = {
    "name": "clicks",
    "kind": "memory",
    "columns": {"event": "int", "clicked": "int", "price": "float"},
    "ready": {"wait": "90s"},
}


@dataclass
class ToyJobs:
    home: Home
    plan_path: Path

    def plan(self, **words: list[str]) -> None:
        """What each process does at its first, second, … start: `data_0=["exit 4", "serve"]`."""
        plan = {name.replace("_", "-"): value for name, value in words.items()}
        self.plan_path.write_text(json.dumps(plan))

    def request(self, job_id: str = "j1", **job: Any) -> JobRequest:
        pipeline = PipelineSpec.model_validate({**PIPELINE, "job": job})
        sources = {"clicks": SourceSpec.model_validate(SOURCE)}
        return JobRequest.of(job_id, self.home.root, self.home.root, pipeline, sources, [])

    def submit(self, job_id: str = "j1", **job: Any) -> JobHandle:
        return submit(self.home, self.request(job_id, **job), SUPERVISOR)

    def serving(self, handle: JobHandle, *names: str) -> JobStatus:
        for name in names or ("driver-0", "data-0", "trainer-0"):
            log = self.home.job(handle.job_id) / "logs" / f"{name}.log"
            eventually(lambda log=log: log.exists() and "serving" in log.read_text())
        return handle.status()

    def starts(self, name: str, job_id: str = "j1") -> list[list[str]]:
        """(pid, prefix, attempt) of each start of a process."""
        path = self.home.job(job_id) / f"toy-{name}.starts"
        return [line.split() for line in path.read_text().splitlines()]

    def attempts(self, name: str) -> list[tuple[int, int]]:
        """(submission, start under its supervisor) of each start of a process."""
        return [divmod(int(attempt), 65_536) for *_, attempt in self.starts(name)]

    def processes(self) -> list[psutil.Process]:
        return [each for each in processes_of(self.home.root) if each.pid != os.getpid()]


def processes_of(
    home: Path, holds: Callable[[Mapping[str, str]], bool] = lambda _environment: True
) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            environment = process.environ()
            if environment.get("FOREBAY_HOME") == str(home) and holds(environment):
                found.append(process)
    return found
