"""Processes of the embedded Airflow: found, killed, and gone afterwards."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from support.airflow_cluster import Airflow
from support.airflow_pipelines import Pipeline
from support.kills import is_alive
from support.there import until

Json = dict[str, Any]
BACK_SECONDS = 20
GONE_SECONDS = 20


@dataclass(frozen=True)
class Kill:
    """A component that was killed: what lived below it, and after how long another one stood."""

    component: str
    below: list[psutil.Process]
    back_seconds: float


def kill_component(airflow: Airflow, name: str, *pipelines: Pipeline) -> Kill:
    pid = airflow.components()[name]["pid"]
    below = psutil.Process(pid).children(recursive=True)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)

    def back() -> bool:
        found = airflow.components()[name]
        return found["pid"] not in {None, pid} and is_alive(found["pid"])

    airflow.until(f"{name} is back after SIGKILL", back, BACK_SECONDS, *pipelines)
    return Kill(name, below, time.monotonic() - began)


def kill_task(task: Json) -> list[psutil.Process]:
    process = psutil.Process(task["pid"])
    processes = [process, *process.children(recursive=True)]
    process.kill()
    return processes


def kill_worker(task: Json) -> list[psutil.Process]:
    """The same for the LocalExecutor's worker above it, so that nobody tells of the end."""
    worker = psutil.Process(task["pid"]).parent()
    assert worker is not None
    assert "LocalExecutor" in " ".join(worker.cmdline()), worker.cmdline()
    worker.kill()
    return [worker, *kill_task(task)]


def gone(processes: list[psutil.Process], seconds: float = GONE_SECONDS) -> list[str]:
    until(lambda: not any(map(_lives, processes)), seconds, 0.1)
    return [_text(process) for process in processes if _lives(process)]


def processes_of(airflow: Airflow) -> list[psutil.Process]:
    home = str(airflow.project.home)
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            environment = process.environ()
            of_airflow = environment.get("AIRFLOW_HOME", "").startswith(home)
            if environment.get("FOREBAY_HOME") == home or of_airflow:
                found[process.pid] = process
    pids = [each["pid"] for each in airflow.components().values() if each["pid"]]
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            for each in [process, *process.children(recursive=True)]:
                found[each.pid] = each
    return list(found.values())


def stages_of(airflow: Airflow) -> list[psutil.Process]:
    found = []
    for process in processes_of(airflow):
        with suppress(psutil.NoSuchProcess):
            parent = process.parent()
            words = [each.cmdline() for each in (process, parent) if each is not None]
            # Each is forked from a process that waits for the next.
            if len(words) > 1 and all("forebay.stages" in each for each in words):
                found.append(process)
    return found


def modes_of_folders(root: Path) -> dict[str, int]:
    """Mode of a project's folder, of those above it, and of those above a database of root's."""
    folders = {root, *root.parents, Path("/var/lib"), *Path("/var/lib").parents}
    return {str(path): path.stat().st_mode for path in sorted(folders)}


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _text(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())}"
    except psutil.NoSuchProcess:
        return f"{process.pid} (gone now)"
