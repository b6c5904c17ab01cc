"""The keeper of the embedded Airflow is killed: nothing is left alone, and `up` starts again."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from support.projects import Project

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.jobs import left_processes
from forebay.embedded.postgres.place import database_place
from forebay.home.paths import Home

pytestmark = pytest.mark.chaos

START_SECONDS = 300


def test_a_killed_keeper_is_seen_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    project, up = Project(tmp_path), ("up", "--config", "config", "--output", "json")
    embedded = Embedded(Home(project.home))
    try:
        first = json.loads(project.forebay(*up, timeout_seconds=START_SECONDS).stdout)
        state = embedded.state()
        assert state is not None
        os.kill(state.keeper_pid, signal.SIGKILL)
        status = project.forebay("status", "--output", "json", check=False)
        found = json.loads(status.stdout)
        assert (status.returncode, found["state"]) == (4, "lost")
        assert "`forebay up`" in found["problem"]
        pid_file = database_place(embedded.layout).data / "postmaster.pid"
        deadline = time.monotonic() + 20
        while pid_file.exists():  # the database ends in good order, by itself
            assert time.monotonic() < deadline
            time.sleep(0.1)
        second = json.loads(project.forebay(*up, timeout_seconds=START_SECONDS).stdout)
        assert (second["started"], second["url"]) == (True, first["url"])
        assert second["password"] is None  # it is the one that was shown
        project.forebay("status")
    finally:
        embedded.stop()
        embedded.remove_database()
        assert left_processes(embedded.layout) == []
