"""SIGKILL at a chosen share of a window's rows, watched through the trainer's own counter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from forebay.executors.job.stored_jobs import jobs_of
from forebay.home.paths import Home
from support.projects import Project
from support.there import eventually, until
from support.toy_roles.jobs import processes_of
from support.truth_rows import trained_rows


def used_rows(project: Project, window: str, generation: int = 1, pipeline: str = "ads") -> int:
    """Rows that trainers of this window have used so far, straight from the mapped counter."""
    folder = project.home / "training" / pipeline / "main" / window / f"g{generation}"
    counters = folder / "counters.bin"
    if not counters.exists() or counters.stat().st_size < 8:
        return trained_rows(project.home, pipeline, window, generation)
    return int(np.fromfile(counters, dtype=np.int64, count=1)[0])


def status(project: Project) -> dict[str, Any]:
    jobs = jobs_of(Home(project.home), "ads")
    return json.loads(jobs[0].row.document) if jobs else {}


def wait_for_rows(
    project: Project, window: str, rows: int, run: subprocess.Popen[str], seconds: float = 60
) -> None:
    """Return as soon as `rows` were used; the run may not end before, nor that last longer."""
    status(project)  # the first look takes longest, and a kill that follows must come in time

    def enough() -> bool:
        assert run.poll() is None, f"the run ended before {rows} rows: {run.communicate()[0]}"
        return used_rows(project, window) >= rows

    eventually(enough, seconds, lambda: f"only {used_rows(project, window)} rows", 0.002)


def kill_role(project: Project, role: str) -> int:
    return signal_role(project, role, signal.SIGKILL)


def signal_role(project: Project, role: str, number: signal.Signals) -> int:
    return signal_first(lambda: status(project)["pids"], role, number)


def signal_first(
    told: Callable[[], Mapping[str, int]], role: str, number: signal.Signals, pause: float = 0.05
) -> int:
    """Signal the first live process of a role; one that is just being restarted is waited for."""

    def living() -> int | None:
        pids = told()  # once: who is restarted in between is not there
        found = (int(pids[name]) for name in sorted(pids) if name.startswith(role))
        return next(filter(is_alive, found), None)

    pid = eventually(living, 30, lambda: f"no {role} lives: {told()}", pause)
    os.kill(pid, number)
    return pid


def wait_for_ends(pids: Collection[int]) -> None:
    """Return when none of them lives: a process takes a while to die of its SIGKILL.

    Until then its counter shows what it has used, and the next kill could meet it once more.
    """
    assert until(lambda: not any(map(is_alive, pids)), 30, 0.002), f"some of {pids} live"


def is_alive(pid: int) -> bool:
    """Whether a process runs, or could: one that nobody has buried yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_of(project: Project, name: str) -> int:
    return int(status(project)["pids"][name])


def log_of(project: Project, name: str) -> str:
    folders = sorted((project.home / "jobs").glob("*/logs"))
    return (folders[-1] / f"{name}.log").read_text()


def job_processes(project: Project) -> list[psutil.Process]:
    return processes_of(project.home, lambda environment: "FOREBAY_JOB_ID" in environment)


def kill_tree(project: Project, run: subprocess.Popen[str]) -> None:
    run.kill()
    for process in job_processes(project):
        process.kill()
    run.wait(10)


@contextmanager
def running(project: Project, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run in the background that never outlives the test."""
    run = project.start(*arguments)
    try:
        yield run
    finally:
        if run.poll() is None:
            kill_tree(project, run)
        assert run.stdout is not None
        run.stdout.close()


def no_process_left(project: Project, seconds: float = 10) -> bool:
    return until(lambda: not job_processes(project), seconds, 0.05)


def summary_of(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())
