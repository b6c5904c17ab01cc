"""A job trains among strangers: exact, in about the same time, in about the same memory."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from support.kill_cases import WINDOW, KillCase
from support.kills import pid_of, running, status, summary_of, wait_for_rows
from support.memory_peak import MemoryPeak
from support.projects import ads_pipeline, ads_project
from support.strangers import Crowd

ROWS = 50_000
GROWTH_MAX = 96 << 20
# Strangers and their victims share the cores of this machine.
SLOWER_MAX, SECONDS_MORE = 4, 5
ANSWERS = {
    "silent": "UNAUTHENTICATED",
    "token": "UNAUTHENTICATED",
    "half-open": "held",
    "garbage": "closed",
}


def seconds_between(case: KillCase, first: float, last: float, run: subprocess.Popen[str]) -> float:
    """From one share of the window's rows to another."""
    wait_for_rows(case.project, WINDOW, int(first * 2 * case.rows), run)
    began = time.monotonic()
    wait_for_rows(case.project, WINDOW, int(last * 2 * case.rows), run)
    return time.monotonic() - began


def test_a_window_trains_on_among_strangers(tmp_path: Path) -> None:
    pipeline = ads_pipeline()
    pipeline["train"]["minibatch_rows"] = 32  # slow enough to be disturbed
    case = KillCase(ads_project(tmp_path, rows=ROWS, pipeline=pipeline), ROWS)
    with running(case.project, *case.arguments) as run:
        alone = seconds_between(case, 0.1, 0.25, run)
        before = status(case.project)["pids"]
        job_dir = next((case.project.home / "jobs").iterdir())
        memory = MemoryPeak(pid_of(case.project, "driver-0"))
        with Crowd(job_dir) as crowd:
            among_strangers = seconds_between(case, 0.25, 0.55, run)
            grown = memory.growth
        after = status(case.project)["pids"]
        output, _ = run.communicate(timeout=150)
        assert run.returncode == 0, output
    case.assert_exact(summary_of(case.summary))
    assert after == before, "no process has ended"
    assert crowd.problems == []
    # A connection that is one too many is not taken.
    seen = {answer for answer in crowd.answers if not answer.endswith(": UNAVAILABLE")}
    assert seen == {
        "bomb at driver: UNIMPLEMENTED",  # nothing that is packed is taken
        *(f"{act} at {at}: {what}" for at in ("driver", "data") for act, what in ANSWERS.items()),
    }
    assert grown < GROWTH_MAX
    assert among_strangers < SLOWER_MAX * 2 * alone + SECONDS_MORE
