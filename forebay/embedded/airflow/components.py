"""The components of the embedded Airflow, their commands, and what Airflow reports of them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from forebay.embedded.airflow.settings import CONNECTIONS, component_environment
from forebay.embedded.launch import KEEPER_PID_NAME
from forebay.embedded.layout import Layout
from forebay.embedded.postgres.account import Account
from forebay.embedded.postgres.place import Place
from forebay.embedded.postgres.server import initdb_command, server_command
from forebay.system.environment import BASE, HOME_DATABASE, PROCESS, Patterns, inherited

AIRFLOW = (sys.executable, "-P", "-m", "airflow")
LAUNCH = (sys.executable, "-P", "-m", "forebay.embedded.launch")
DATABASE = "postgres"
API_SERVER = "api-server"
DAG_PROCESSOR = "dag-processor"
SCHEDULER = "scheduler"
TRIGGERER = "triggerer"
FOLLOW = "follow-"
# In the order in which they are started and shown.
NAMES = (DATABASE, API_SERVER, DAG_PROCESSOR, SCHEDULER, TRIGGERER)
# Components that report to the database, by their names in Airflow's report.
REPORTED = {SCHEDULER: "scheduler", TRIGGERER: "triggerer", DAG_PROCESSOR: "dag_processor"}
# For components that parse YAML or start tasks: a file that is written later may name any variable.
_ALL: Patterns = ("*", *HOME_DATABASE)
# For one that listens on a port, but runs neither pipelines nor tasks.
_WITHOUT_STORAGE: Patterns = (*PROCESS, *HOME_DATABASE, *CONNECTIONS)


@dataclass(frozen=True)
class Component:
    """One component and how it is run.

    end_signal: what it gets from the kernel when the keeper dies.
    stop_signal: what ends it cleanly.
    account: who runs it, if not the calling user.
    in_process: `command` holds arguments of Airflow, which `launch` becomes.
    waits_for_work: when stopped, it waits for the tasks below it, so these are ended first.
    inherits: what it gets from the keeper's environment.
    listening: descriptor of the keeper's socket on which it accepts connections.
    """

    name: str
    command: tuple[str, ...]
    end_signal: signal.Signals = signal.SIGKILL
    stop_signal: signal.Signals = signal.SIGTERM
    account: Account | None = None
    waits_for_work: bool = False
    in_process: bool = False
    inherits: Patterns = _ALL
    listening: int | None = None


def database_component(programs: Path, place: Place) -> Component:
    """PostgreSQL. It ends cleanly even if the keeper does not."""
    return Component(
        DATABASE,
        tuple(server_command(programs, place)),
        end_signal=signal.SIGINT,
        stop_signal=signal.SIGINT,
        account=place.account,
        inherits=BASE,
    )


def initdb_component(programs: Path, place: Place) -> Component:
    command = tuple(initdb_command(programs, place))
    return Component("initdb", command, account=place.account, inherits=BASE)


def airflow_components(listening: int) -> dict[str, Component]:
    """Airflow's components by name; `listening` is the descriptor of the API server's socket.

    Logs of tasks are on this machine, where the API server reads them: nothing needs to serve them.
    """
    scheduler = ("scheduler", "--skip-serve-logs")
    triggerer = ("triggerer", "--skip-serve-logs")
    every = (
        Component(
            API_SERVER,
            ("api-server",),
            in_process=True,
            inherits=_WITHOUT_STORAGE,
            listening=listening,
        ),
        Component(DAG_PROCESSOR, ("dag-processor",), in_process=True),
        Component(SCHEDULER, scheduler, waits_for_work=True, in_process=True),
        Component(TRIGGERER, triggerer, in_process=True),
    )
    return {component.name: component for component in every}


def sync_component(layout: Layout, config_dir: Path) -> Component:
    stubs = layout.stubs(config_dir)
    command = [sys.executable, "-P", "-m", "forebay", "dags", "sync"]
    command += ["--config", str(config_dir), "--dags", str(stubs)]
    command += ["--followed", str(layout.followed(config_dir))]
    return Component(f"sync-{stubs.name}", tuple(command))


def follower_component(pipeline: str, config_dir: Path) -> Component:
    """Trains the window that goes on now. Its job continues without it."""
    command = (sys.executable, "-P", "-m", "forebay", "run", pipeline, "--follow")
    return Component(
        f"{FOLLOW}{pipeline}", (*command, "--config", str(config_dir)), stop_signal=signal.SIGINT
    )


def launch_command(component: Component) -> list[str]:
    """The command that becomes a component; only the keeper runs it."""
    how = ["--end-signal", str(component.end_signal.value)]
    if component.account is not None:
        how += ["--uid", str(component.account.uid), "--gid", str(component.account.gid)]
    if component.in_process:
        how.append("--in-process")
    if component.listening is not None:
        how += ["--listening", str(component.listening)]
    return [*LAUNCH, *how, "--", *component.command]


def launch_environment(
    component: Component, layout: Layout, keeper_pid: int, environment: Mapping[str, str]
) -> dict[str, str]:
    """Its environment, made from the keeper's own."""
    given = inherited(environment, component.inherits)
    return {
        **component_environment(layout, component.name, given),
        KEEPER_PID_NAME: str(keeper_pid),
    }


def component_health(report: Mapping[str, Any]) -> dict[str, str]:
    """`healthy` or `unhealthy` by component, from `/monitor/health`.

    The API server answered, so it is healthy; whether the database answered is in the report.
    """
    return {
        DATABASE: _status(report, "metadatabase"),
        API_SERVER: "healthy",
        **{name: _status(report, key) for name, key in REPORTED.items()},
    }


def last_beat(report: Mapping[str, Any], name: str) -> datetime | None:
    key = REPORTED[name]
    beat = (report.get(key) or {}).get(f"latest_{key}_heartbeat")
    return datetime.fromisoformat(beat) if beat else None


def _status(report: Mapping[str, Any], key: str) -> str:
    return str((report.get(key) or {}).get("status") or "unhealthy")
