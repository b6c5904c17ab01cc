"""Which processes count as left over from the demo."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.demo import show as leftovers
from examples.demo.show import require_nobody_left
from forebay.embedded.kafka.broker import BROKER_ID
from forebay.errors import InfrastructureError
from forebay.home.paths import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(leftovers, "END_SECONDS", 0.3)
    return Home(tmp_path)


@contextmanager
def living(home: Home, job_id: str) -> Iterator[int]:
    """A process as a job's are, once it runs."""
    marks = {"FOREBAY_HOME": str(home.root), "FOREBAY_JOB_ID": job_id}
    command = [sys.executable, "-S", "-c", "print(flush=True); input()"]
    process = subprocess.Popen(
        command, env={**os.environ, **marks}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process:
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_a_process_of_a_job_is(home: Home) -> None:
    with (
        living(home, "flights.main.2013-06-01.g1") as pid,
        pytest.raises(InfrastructureError, match=rf"still running: \[{pid}\]"),
    ):
        require_nobody_left(home, airflow=False)
    require_nobody_left(home, airflow=False)


def test_the_broker_is_not_as_it_ends_later(home: Home) -> None:
    with living(home, BROKER_ID):
        require_nobody_left(home, airflow=False)


def test_jobs_of_other_homes_are_not(home: Home) -> None:
    with living(Home(home.root / "other"), "flights.main.2013-06-01.g1"):
        require_nobody_left(home, airflow=False)
