"""Processes that are alive but make no progress, and what their end has to leave behind."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from support.kill_cases import KillCase
from support.kills import log_of, signal_role
from support.projects import ads_pipeline, ads_project

DEADLINE_SECONDS = 5
CHECKPOINT_STEPS = 10
STOP_AGAIN_SECONDS = 0.2
ROLES = ("driver", "data", "trainer")


def with_deadlines(**job: Any) -> dict[str, Any]:
    deadlines = dict.fromkeys(ROLES, f"{DEADLINE_SECONDS}s")
    return {"failover": {"progress_deadlines": deadlines}, **job}


def hanging_case(root: Path, rows: int, minibatch_rows: int = 128) -> KillCase:
    pipeline = ads_pipeline(**with_deadlines(checkpoint={"every_steps": CHECKPOINT_STEPS}))
    pipeline["train"]["minibatch_rows"] = minibatch_rows
    return KillCase(ads_project(root, rows=rows, pipeline=pipeline), rows, CHECKPOINT_STEPS)


def stop(case: KillCase, *roles: str) -> None:
    """SIGSTOP, again and again: the processes live, and get on no more until they are killed."""
    pids = [signal_role(case.project, role, signal.SIGSTOP) for role in roles]
    processes = [psutil.Process(pid) for pid in pids]
    threading.Thread(target=_keep_stopped, args=(processes,), daemon=True).start()


def _keep_stopped(processes: list[psutil.Process]) -> None:
    while living := [each for each in processes if each.is_running()]:
        time.sleep(STOP_AGAIN_SECONDS)  # long enough to write stacks
        for process in living:
            with suppress(psutil.NoSuchProcess):
                process.suspend()


def assert_ended(case: KillCase, summary: dict[str, Any], *roles: str, why: str) -> None:
    """Each role was ended once, counted with its reason; its stacks are in its log."""
    restarts = dict.fromkeys(("supervisor", *ROLES), 0) | dict.fromkeys(roles, 1)
    assert summary["restarts"] == restarts, summary["notes"]
    for role in roles:
        notes = [note for note in summary["notes"] if note.startswith(f"{role}-0 hung: ")]
        assert len(notes) == 1, summary["notes"]
        assert why in notes[0]
        log = log_of(case.project, f"{role}-0")
        assert "most recent call first" in log
    case.assert_exact(summary)
