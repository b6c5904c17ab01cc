"""What is known when a wait on Airflow fails: enough to understand it from a CI log alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from forebay.embedded.airflow.rest import AirflowApi
from forebay.errors import ForebayError
from forebay.executors.job.stored_jobs import find_job
from forebay.home.paths import Home
from support.projects import Project

Json = dict[str, Any]
_LOG_LINES = 25
_SOUND = frozenset({"success", "skipped", None})


def diagnosis(project: Project, api: AirflowApi, dag_ids: Sequence[str]) -> str:
    """Components, import errors, runs with their tasks, logs of tasks that are not done, jobs."""
    parts = [
        _said("components", lambda: project.forebay("status", check=False).stdout),
        _said("import errors", lambda: _import_errors(api)),
        *(_said(f"runs of {name}", partial(_runs_text, api, name)) for name in dag_ids),
        _said("jobs", lambda: "\n".join(_jobs(project))),
        _said("component logs", lambda: "\n".join(_component_logs(project))),
    ]
    return "\n".join(parts)


def _said(title: str, look: Callable[[], str]) -> str:
    """A section; what cannot be asked for must not hide the rest."""
    try:
        text = look()
    except (ForebayError, OSError, LookupError, AssertionError) as error:
        text = f"not to be had: {type(error).__name__}: {error}"
    return f"---- {title}\n{text}"


def _import_errors(api: AirflowApi) -> str:
    return "\n".join(f"{each['filename']}: {each['stack_trace']}" for each in api.import_errors())


def _runs_text(api: AirflowApi, dag_id: str) -> str:
    return "\n".join(_runs(api, dag_id))


def _runs(api: AirflowApi, dag_id: str) -> Iterator[str]:
    for run in api.dag_runs(dag_id):
        yield (
            f"{run['dag_run_id']} {run['state']} window {run['data_interval_start']}"
            f" from {run['start_date']} to {run['end_date']}"
        )
        tasks = api.task_instances(dag_id, run["dag_run_id"])
        for task in tasks:
            yield (
                f"    {task['task_id']:24} {task['state']!s:18} try {task['try_number']}"
                f" of {task['max_tries'] + 1} {task['start_date']} to {task['end_date']}"
            )
        if run["state"] != "success":
            for task in tasks:
                yield from _log(api, task)


def _log(api: AirflowApi, task: Json) -> Iterator[str]:
    if task["state"] in _SOUND or task["state"] == "upstream_failed":
        return
    lines = api.log(task["dag_id"], task["dag_run_id"], task["task_id"], max(1, task["try_number"]))
    yield f"    log of {task['task_id']}:"
    yield from (f"        {line}" for line in lines[-_LOG_LINES:])


def _jobs(project: Project) -> Iterator[str]:
    for folder in sorted((project.home / "jobs").glob("*")):
        job = find_job(Home(project.home), folder.name)
        text = "no status" if job is None else job.row.document
        if '"succeeded"' in text:
            continue
        yield f"{folder.name}: {text}"
        for log in sorted((folder / "logs").glob("*.log")):
            yield from _tail(log)


def _component_logs(project: Project) -> Iterator[str]:
    for log in sorted((project.home / "airflow" / "logs" / "components").glob("*.log")):
        yield from _tail(log)


def _tail(path: Path) -> Iterator[str]:
    yield f"  {path.name}:"
    yield from (
        f"    {line}" for line in path.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    )
