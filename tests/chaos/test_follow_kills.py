"""A line that is followed is exact, whichever of its processes are killed meanwhile."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from support.growing import BEGIN, following, publishing, require_exact
from support.kills import kill_tree, no_process_left, status


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_points(tmp_path: Path, seed: int) -> None:
    """Each process of the job, its supervisor and who follows it, ten times in three hours."""
    luck = random.Random(seed)
    followed = following(tmp_path, BEGIN, 90.0, failover={"restarts_max": 100})
    project, stop = followed.project, threading.Event()
    killed: list[str] = []

    def kill() -> None:
        while not stop.wait(luck.uniform(2.0, 12.0)):
            role = luck.choice(["driver", "data", "trainer", "supervisor"])
            pids = status(project).get("pids", {})
            for name, pid in pids.items():
                if name.startswith(role):
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                        killed.append(role)

    with publishing(followed, 4):
        thread = threading.Thread(target=kill)
        thread.start()
        try:
            while (run := project.start("run", "ads", "--follow")) is not None:
                try:
                    printed = run.communicate(timeout=luck.uniform(10, 40))[0]
                except subprocess.TimeoutExpired:
                    run.kill()
                    run.communicate()
                    killed.append("follow")
                else:
                    assert run.returncode == 0, printed
                    break
        finally:
            stop.set()
            thread.join(20)
            kill_tree(project, run)
    assert len(killed) > 8
    require_exact(followed, 4)
    assert no_process_left(project)
