"""A job trains among strangers: exact, in about the same time, in about the same memory."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Self

import psutil
from support.kill_cases import WINDOW, KillCase
from support.kills import pid_of, running, status, summary_of, wait_for_rows
from support.projects import ads_pipeline, ads_project
from support.strangers import Crowd

ROWS = 50_000
GROWTH_MAX = 96 << 20
# Strangers and their victims share the cores of this machine.
SLOWER_MAX, SECONDS_MORE = 4, 5
EVERYWHERE = {
    "silent": "UNAUTHENTICATED",
    "token": "UNAUTHENTICATED",
    "half-open": "held",
    "garbage": "closed",
}


class Peaks:
    """The most memory that processes had while the block lasted, above what they had before."""

    def __init__(self, **pids: int) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._before = self._now()
        self._highest = dict(self._before)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def growth(self) -> dict[str, int]:
        return {name: most - self._before[name] for name, most in self._highest.items()}

    def _now(self) -> dict[str, int]:
        return {name: int(each.memory_info().rss) for name, each in self._processes.items()}

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            for name, bytes_now in self._now().items():
                self._highest[name] = max(self._highest[name], bytes_now)


def seconds_between(case: KillCase, first: float, last: float, run: subprocess.Popen[str]) -> float:
    """From one share of the window's rows to another."""
    wait_for_rows(case.project, WINDOW, int(first * 2 * case.rows), run)
    began = time.monotonic()
    wait_for_rows(case.project, WINDOW, int(last * 2 * case.rows), run)
    return time.monotonic() - began


def test_a_window_trains_on_among_strangers(tmp_path: Path) -> None:
    pipeline = ads_pipeline()
    pipeline["train"]["minibatch_rows"] = 64  # slow enough to be disturbed
    case = KillCase(ads_project(tmp_path, rows=ROWS, pipeline=pipeline), ROWS)
    with running(case.project, *case.arguments) as run:
        alone = seconds_between(case, 0.1, 0.3, run)
        before = status(case.project)["pids"]
        job_dir = next((case.project.home / "jobs").iterdir())
        driver = pid_of(case.project, "driver-0")
        with Peaks(driver=driver) as peaks, Crowd(job_dir) as crowd:
            among_strangers = seconds_between(case, 0.3, 0.7, run)
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
        *(
            f"{act} at {role}: {what}"
            for act, what in EVERYWHERE.items()
            for role in ("driver", "data")
        ),
    }
    assert peaks.growth["driver"] < GROWTH_MAX
    assert among_strangers < SLOWER_MAX * 2 * alone + SECONDS_MORE
