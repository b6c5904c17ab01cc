"""The keeper of the embedded Airflow is killed: nothing is left alone, and `up` starts again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.jobs import left_processes
from forebay.embedded.postgres.place import database_place
from forebay.home.paths import Home

pytestmark = pytest.mark.chaos

START_SECONDS = 300


def forebay(home: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "forebay", *words],
        env={**os.environ, "FOREBAY_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def test_a_killed_keeper_is_seen_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    home = tmp_path / "home"
    up = ("up", "--config", str(tmp_path / "config"), "--output", "json")
    embedded = Embedded(Home(home))
    try:
        code, output = forebay(home, *up)
        assert code == 0, output
        first = json.loads(output)
        state = embedded.state()
        assert state is not None
        os.kill(state.keeper_pid, signal.SIGKILL)
        code, output = forebay(home, "status", "--output", "json")
        found = json.loads(output)
        assert (code, found["state"]) == (4, "lost")
        assert "`forebay up`" in found["problem"]
        pid_file = database_place(embedded.layout).data / "postmaster.pid"
        deadline = time.monotonic() + 20
        while pid_file.exists():  # the database ends in good order, by itself
            assert time.monotonic() < deadline
            time.sleep(0.1)
        code, output = forebay(home, *up)
        assert code == 0, output
        second = json.loads(output)
        assert (second["started"], second["url"]) == (True, first["url"])
        assert second["password"] is None  # it is the one that was shown
        assert forebay(home, "status")[0] == 0
    finally:
        embedded.stop()
        embedded.remove_database()
        assert left_processes(embedded.layout) == []
