"""SIGKILL at a chosen share of a window's rows, watched through the trainer's own counter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from forebay.executors.job.stored_jobs import jobs_of
from forebay.home.paths import Home
from support.projects import Project
from support.truth_rows import trained_rows


def used_rows(project: Project, window: str, generation: int = 1, pipeline: str = "ads") -> int:
    """Rows that trainers of this window have used so far, straight from the mapped counter."""
    folder = project.home / "training" / pipeline / "main" / window / f"g{generation}"
    counters = folder / "counters.bin"
    if not counters.exists() or counters.stat().st_size < 8:
        return trained_rows(project.home, pipeline, window, generation)
    return int(np.fromfile(counters, dtype=np.int64, count=1)[0])


def status(project: Project) -> dict[str, Any]:
    """The newest job's status as it is stored."""
    jobs = jobs_of(Home(project.home), "ads")
    return json.loads(jobs[0].row.document) if jobs else {}


def progress_of(project: Project) -> dict[str, Any]:
    """The newest job's progress as its trainer wrote it."""
    folders = sorted((project.home / "jobs").glob("*/progress.json"))
    return json.loads(folders[-1].read_text())


def wait_for_rows(project: Project, window: str, rows: int, run: subprocess.Popen[str]) -> None:
    """Return as soon as `rows` were used.

    Raises:
        AssertionError: when the run ends first, or nothing happens for a minute.
    """
    status(project)  # the first look takes longest, and a kill that follows must come in time
    deadline = time.monotonic() + 60
    while used_rows(project, window) < rows:
        if run.poll() is not None:
            raise AssertionError(f"the run ended before {rows} rows: {run.communicate()[0]}")
        if time.monotonic() > deadline:
            raise AssertionError(f"only {used_rows(project, window)} rows after a minute")
        time.sleep(0.002)


def kill_role(project: Project, role: str) -> int:
    """SIGKILL one process of a role (`driver`, `data`, `trainer`, `supervisor`); its pid."""
    return signal_role(project, role, signal.SIGKILL)


def signal_role(project: Project, role: str, number: signal.Signals) -> int:
    """Signal the first live process of a role; one that is just being restarted is waited for."""
    deadline = time.monotonic() + 30
    while True:
        pids = status(project)["pids"]  # once: who is restarted in between is not there
        living = [
            int(pid)
            for name, pid in sorted(pids.items())
            if name.startswith(role) and is_alive(int(pid))
        ]
        if living:
            os.kill(living[0], number)
            return living[0]
        assert time.monotonic() < deadline, f"no {role} lives: {status(project)}"
        time.sleep(0.05)


def wait_for_ends(pids: Collection[int]) -> None:
    """Return when none of them lives: a process takes a while to die of its SIGKILL.

    Until then its counter shows what it has used, and the next kill could meet it once more.
    """
    deadline = time.monotonic() + 30
    while living := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, f"{living} have not died"
        time.sleep(0.002)


def is_alive(pid: int) -> bool:
    """Whether a process runs, or could: one that nobody has buried yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_of(project: Project, name: str) -> int:
    """The pid of a live process of the newest job by name, such as `trainer-0`."""
    return int(status(project)["pids"][name])


def log_of(project: Project, name: str) -> str:
    """What a process of the newest job has logged so far, all its lives together."""
    folders = sorted((project.home / "jobs").glob("*/logs"))
    return (folders[-1] / f"{name}.log").read_text()


def job_processes(project: Project) -> list[psutil.Process]:
    """All live processes whose environment carries a job id of this project's home."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if "FOREBAY_JOB_ID" in environment and environment.get("FOREBAY_HOME") == str(project.home):
            found.append(process)
    return found


def kill_tree(project: Project, run: subprocess.Popen[str]) -> None:
    """SIGKILL the submitter and every process of its job."""
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
    """Whether every process of the project's jobs ends within a few seconds."""
    deadline = time.monotonic() + seconds
    while job_processes(project):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def summary_of(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())
