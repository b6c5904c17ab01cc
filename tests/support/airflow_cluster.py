"""One running Airflow of a generated project: what the scenarios ask, start and wait for.

States come from Airflow's REST API alone. Every wait has a deadline and fails with what Airflow,
its logs and the jobs say at that moment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from forebay.embedded.airflow.http import Endpoint, HttpSession
from forebay.embedded.airflow.rest import AirflowApi, Reprocess
from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.job.stored_jobs import find_job
from forebay.home.paths import Home
from support.airflow_pipelines import Pipeline
from support.projects import Project
from support.there import eventually

Json = dict[str, Any]
T = TypeVar("T")
START_SECONDS = 240
STOP_SECONDS = 90
POLL_SECONDS = 0.5
# A page of Airflow's API costs about 50 ms of CPU, so many things are asked for in one.
ENDED = frozenset({"success", "failed"})
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_LOG_LINES = 25
_SOUND = frozenset({"success", "skipped", "upstream_failed", None})


@dataclass(frozen=True)
class Run:
    dag_id: str
    run_id: str
    state: str
    run_type: str
    logical_date: datetime
    window: datetime
    end_date: datetime | None

    @classmethod
    def of(cls, found: Json) -> Run:
        return cls(
            dag_id=found["dag_id"],
            run_id=found["dag_run_id"],
            state=found["state"],
            run_type=found["run_type"],
            logical_date=_instant(found["logical_date"]),
            window=_instant(found["data_interval_start"]),
            end_date=_instant(found["end_date"]) if found["end_date"] else None,
        )

    def ended_since(self, instant: datetime) -> bool:
        return self.state in ENDED and self.end_date is not None and self.end_date > instant


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@dataclass
class Airflow:
    project: Project
    endpoint: Endpoint | None = None
    started_seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)

    def up(self) -> None:
        began = time.monotonic()
        done = self.project.forebay(
            "up", "--config", "config", "--output", "json", timeout_seconds=START_SECONDS
        )
        found = json.loads(done.stdout)
        self.endpoint = Endpoint(found["url"], found["user"], found["password"])
        self.started_seconds = time.monotonic() - began

    def down(self, *more: str) -> float:
        began = time.monotonic()
        self.project.forebay("down", *more, timeout_seconds=STOP_SECONDS)
        return time.monotonic() - began

    @cached_property
    def api(self) -> AirflowApi:
        assert self.endpoint is not None
        return AirflowApi(self.endpoint)

    @cached_property
    def http(self) -> HttpSession:
        assert self.endpoint is not None
        return HttpSession(self.endpoint, 30)

    # Start ------------------------------------------------------------------------------------

    def trigger(
        self, pipeline: Pipeline, logical_date: datetime, conf: Mapping[str, Any] | None = None
    ) -> str:
        return str(self.api.trigger(pipeline.name, logical_date, conf)["dag_run_id"])

    def backfill(
        self, pipeline: Pipeline, first: int, last: int, reprocess: Reprocess = "none"
    ) -> int:
        """A backfill of windows `first` to `last` with the API's other defaults; its number.

        Airflow refuses a second one until it has noticed that the first is complete.
        """
        self.backfills_complete(pipeline)
        found = self.api.create_backfill(
            pipeline.name, pipeline.window(first), pipeline.window(last), reprocess
        )
        return int(found["id"])

    def unpause(self, *pipelines: Pipeline) -> None:
        for pipeline in pipelines:
            self.until(f"{pipeline.name} is a DAG", partial(self.knows, pipeline), 60, pipeline)
            self.api.pause(pipeline.name, paused=False)

    def knows(self, pipeline: Pipeline) -> bool:
        return pipeline.name in {dag["dag_id"] for dag in self.api.dags()}

    def form(self, pipeline: Pipeline, first: int, last: int) -> None:
        """What the backfill form of a paused DAG does, with its defaults, when Run is clicked.

        Read in Airflow's own bundle (`createBackfill`, `max_active_runs: 1`); the box
        "Unpause … on trigger" is checked.
        """
        self.api.pause(pipeline.name, paused=False)
        body = {
            "dag_id": pipeline.name,
            "from_date": f"{pipeline.window(first):%Y-%m-%dT%H:%M:%S.000Z}",
            "to_date": f"{pipeline.window(last):%Y-%m-%dT%H:%M:%S.000Z}",
            "max_active_runs": 1,
            "reprocess_behavior": "none",
            "run_backwards": False,
            "run_on_latest_version": True,
            "dag_run_conf": None,
        }
        self.http.post("/backfills", body)

    def backfills_complete(self, pipeline: Pipeline) -> None:
        path = f"/backfills?dag_id={pipeline.name}"
        self.until(
            f"backfills of {pipeline.name} are complete",
            lambda: all(each["completed_at"] for each in self.http.get(path)["backfills"]),
            90,
            pipeline,
        )

    # Ask --------------------------------------------------------------------------------------

    def runs(self, pipeline: Pipeline) -> list[Run]:
        return [Run.of(found) for found in self.api.dag_runs(pipeline.name)]

    def run(self, pipeline: Pipeline, run_id: str) -> Run:
        return Run.of(self.api.dag_run(pipeline.name, run_id))

    def run_of(self, pipeline: Pipeline, number: int) -> Run:
        found = [run for run in self.runs(pipeline) if run.window == pipeline.window(number)]
        assert found, f"{pipeline.name} has no run of {pipeline.key(number)}"
        return found[-1]

    def tasks(self, run: Run) -> dict[str, Json]:
        return {task["task_id"]: task for task in self.api.task_instances(run.dag_id, run.run_id)}

    def states(self, run: Run) -> dict[str, str | None]:
        return {name: task["state"] for name, task in self.tasks(run).items()}

    def log(self, run: Run, task_id: str, attempt: int | None = None) -> str:
        if attempt is None:
            attempt = max(
                1, int(self.api.task_instance(run.dag_id, run.run_id, task_id)["try_number"])
            )
        return "\n".join(self.api.log(run.dag_id, run.run_id, task_id, attempt))

    def result(self, run: Run, task_id: str) -> Json:
        found: Json = self.api.xcom(run.dag_id, run.run_id, task_id)
        return found

    def xcoms(self, run: Run, task_id: str) -> dict[str, Any]:
        path = f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}/taskInstances/{task_id}/xcomEntries"
        keys = [entry["key"] for entry in self.http.get(path)["xcom_entries"]]
        return {key: self.api.xcom(run.dag_id, run.run_id, task_id, key) for key in keys}

    def components(self) -> dict[str, Json]:
        path = self.project.home / "airflow" / "endpoint.json"
        return {each["name"]: each for each in json.loads(path.read_text())["components"]}

    def heartbeat(self, component: str) -> str:
        return str(self.api.health()[component][f"latest_{component.replace('-', '_')}_heartbeat"])

    def answers(self) -> bool:
        try:
            return bool(self.api.health())
        except InfrastructureError:
            return False

    # Wait -------------------------------------------------------------------------------------

    def until(
        self, what: str, look: Callable[[], T | None], seconds: float, *pipelines: Pipeline
    ) -> T:
        """Wait until `look` finds something; what it found. In vain: all that is known."""
        told = lambda: f"after {seconds:g} s not: {what}\n{self.diagnosis(*pipelines)}"  # noqa: E731
        return eventually(look, seconds, told, POLL_SECONDS)

    def ended(
        self,
        pipeline: Pipeline,
        expected: Mapping[int, str],
        seconds: float,
        since: datetime = LONG_AGO,
    ) -> dict[int, Run]:
        """Wait until the newest run of each window ended after `since`, in the expected state.

        A run that ends in another state ends the waiting at once.
        """
        wanted = {pipeline.window(number): number for number in expected}

        def look() -> dict[int, Run] | None:
            newest = {
                wanted[run.window]: run for run in self.runs(pipeline) if run.window in wanted
            }
            over = {number: run for number, run in newest.items() if run.ended_since(since)}
            wrong = {
                pipeline.key(number): run.state
                for number, run in over.items()
                if run.state != expected[number]
            }
            assert not wrong, f"{pipeline.name}: {wrong}\n{self.diagnosis(pipeline)}"
            return over if len(over) == len(expected) else None

        states = {pipeline.key(number): state for number, state in expected.items()}
        return self.until(f"{pipeline.name} ends as {states}", look, seconds, pipeline)

    def heartbeats(self, component: str, count: int) -> None:
        """Wait until a component has told so many times that it lives."""
        for _ in range(count):
            seen = self.heartbeat(component)
            later = lambda seen=seen: self.heartbeat(component) > seen  # noqa: E731
            self.until(f"{component} tells that it lives", later, 60)

    def task_is(
        self, pipeline: Pipeline, run: Run, task_id: str, state: str, seconds: float
    ) -> Json:
        def look() -> Json | None:
            task = self.api.task_instance(run.dag_id, run.run_id, task_id)
            return task if task["state"] == state else None

        what = f"{task_id} of {run.run_id} of {pipeline.name} is {state}"
        return self.until(what, look, seconds, pipeline)

    def diagnosis(self, *pipelines: Pipeline) -> str:
        parts: list[str] = []
        try:
            parts.extend(_diagnosis(self, pipelines))  # what comes before an error stays
        except (ForebayError, OSError, LookupError, AssertionError) as error:
            parts.append(f"the rest is not to be had: {type(error).__name__}: {error}")
        return "\n".join(parts)


def now() -> datetime:
    return datetime.now(UTC)


def _diagnosis(airflow: Airflow, pipelines: Sequence[Pipeline]) -> Iterator[str]:
    """Components, jobs that have not succeeded; then what an API that is there says of runs."""
    home, api = airflow.project.home, airflow.api
    yield airflow.project.forebay("status", check=False).stdout
    yield from _tails(home / "airflow/logs/components")
    for folder in sorted((home / "jobs").glob("*")):
        job = find_job(Home(home), folder.name)
        if job is None or '"succeeded"' not in job.row.document:
            yield f"{folder.name}: {job and job.row.document}"
            yield from _tails(folder / "logs")
    yield from (f"{each['filename']}: {each['stack_trace']}" for each in api.import_errors())
    for run in (run for pipeline in pipelines for run in airflow.runs(pipeline)):
        yield str(run)
        for name, task in airflow.tasks(run).items():
            times = f"try {task['try_number']}, {task['start_date']} to {task['end_date']}"
            yield f"    {name:24} {task['state']!s:18} {times}"
            if run.state != "success" and task["state"] not in _SOUND:
                yield _end_of(airflow.log(run, name))


def _tails(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.log")):
        yield f"  {path.name}:\n{_end_of(path.read_text(errors='replace'))}"


def _end_of(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.splitlines()[-_LOG_LINES:])
