"""`forebay status`: the state of this home's Airflow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from forebay.commands.shared.output import Form, Output, OutputFormat
from forebay.errors import ForebayError, InfrastructureError
from forebay.home.paths import Home
from forebay.system.output.counted import counted

if TYPE_CHECKING:
    from forebay.embedded.airflow.cluster import Embedded
    from forebay.embedded.state import ClusterStatus, ComponentStatus

COLUMNS = ("component", "state", "health", "pid", "up", "restarts")
REQUEST_SECONDS = 10.0


def status(output: Form = OutputFormat.TEXT) -> None:
    """Show whether every component is healthy.

    Exits with 0 only if all of them are.
    """
    from forebay.embedded.airflow.cluster import Embedded

    embedded = Embedded(Home.from_environment())
    state = embedded.state()
    if state is None:
        raise InfrastructureError(
            f"Airflow was never started for {embedded.home.root}: `forebay up` starts it"
        )
    facts = _facts(embedded, state)
    shown = Output(output)
    if shown.is_json:
        shown.json(facts)
    else:
        _print(shown, facts)
    if not facts["healthy"]:
        raise typer.Exit(InfrastructureError.exit_code)


def _facts(embedded: Embedded, state: ClusterStatus) -> dict[str, Any]:
    from forebay.embedded.airflow.components import FOLLOW, component_health
    from forebay.embedded.airflow.rest import AirflowApi

    problem = state.error
    dags = import_errors = None
    health: dict[str, str] = {}
    if state.state == "lost":
        log = embedded.layout.log("keeper")
        problem = f"its keeper died: `forebay up` restarts it (log: {log})"
    if state.state == "running":
        api = AirflowApi(embedded.endpoint(), REQUEST_SECONDS)
        try:
            health = component_health(api.health())
            dags, import_errors = len(api.dags()), len(api.import_errors())
        except ForebayError as error:
            problem = str(error)
    parts = embedded.status()
    followers = [one.name for one in parts if one.name.startswith(FOLLOW)]
    health |= dict.fromkeys(followers, "healthy")  # those that run
    shown = (one for one in parts if one.name not in followers or one.state != "stopped")
    rows = [_row(one, health) for one in shown]
    return {
        "state": state.state,
        "healthy": state.state == "running" and all(row["health"] == "healthy" for row in rows),
        "doing": state.doing or None,
        "problem": problem,
        "sync_error": state.sync_error,
        "url": state.url,
        "user": state.user,
        "config": state.config_dirs,
        "dags": dags,
        "import_errors": import_errors,
        "components": rows,
        "logs": embedded.layout.log("any").parent,
    }


def _row(component: ComponentStatus, health: dict[str, str]) -> dict[str, Any]:
    started = component.started_at
    seconds = (datetime.now(UTC) - started).total_seconds() if started is not None else None
    return {
        "component": component.name,
        "state": component.state,
        "health": health.get(component.name) if component.state == "running" else None,
        "pid": component.pid,
        "up": round(seconds) if seconds is not None else None,
        "restarts": component.restarts,
    }


def _print(shown: Output, facts: dict[str, Any]) -> None:
    doing = f" ({facts['doing']})" if facts["doing"] else ""
    shown.line(f"Airflow is {facts['state']}{doing}: {facts['url']}, user {facts['user']}")
    rows = [
        {**row, "pid": str(row["pid"] or "-"), "up": _duration(row["up"])}
        for row in facts["components"]
    ]
    shown.table(rows, COLUMNS)
    if facts["dags"] is not None:
        dags, wrong = counted(facts["dags"], "DAG"), counted(facts["import_errors"], "import error")
        shown.line(f"{dags}, {wrong}")
    for name in ("problem", "sync_error"):
        if facts[name]:
            shown.line(f"{name.replace('_', ' ')}: {facts[name]}")
    if not facts["healthy"]:
        shown.line(f"logs: {facts['logs']}")
        if facts["state"] == "running":
            shown.line("one that hangs: `kill -9` its pid, and it is restarted")


def _duration(seconds: int | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
