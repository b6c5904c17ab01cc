"""Which processes count as left over from the demo."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from support.there import there

from examples.demo import show as leftovers
from examples.demo.show import require_nobody_left
from forebay.embedded.kafka.broker import BROKER_ID
from forebay.errors import InfrastructureError
from forebay.home.paths import Home


@pytest.mark.parametrize(
    ("place", "job_id", "counts"),
    [
        ("home", "flights.main.2013-06-01.g1", True),
        ("home", BROKER_ID, False),  # it ends later
        ("other", "flights.main.2013-06-01.g1", False),
    ],
)
def test_only_processes_of_jobs_of_this_home_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, job_id: str, counts: bool
) -> None:
    monkeypatch.setattr(leftovers, "END_SECONDS", 0.3)
    marks = {"FOREBAY_HOME": str(tmp_path / place), "FOREBAY_JOB_ID": job_id}
    command = [sys.executable, "-S", "-c", "print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, **marks}, **pipes) as process:
        there(process.stdout).readline()
        left = pytest.raises(InfrastructureError, match=rf"still running: \[{process.pid}\]")
        with left if counts else nullcontext():
            require_nobody_left(Home(tmp_path / "home"), airflow=False)
        process.kill()
    require_nobody_left(Home(tmp_path / "home"), airflow=False)
