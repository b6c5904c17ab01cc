"""A line whose processes stay, window by window, while all of them are killed again and again."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.kill_cases import expected_of
from support.projects import DAY, FIRST_DAY, ads_pipeline, ads_project
from support.standing import processes, runner_of, trained
from support.strangers import until

from forebay.executors.job.runners import end_runner
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home

DAYS = 12
KILLS = 40
SEED = 20261129
VICTIMS = ("supervisor", "driver", "data_executor", "trainer")


@pytest.mark.chaos
def test_forty_kills_of_a_line_that_stays_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """Some hit between two windows, some while a job is handed over, most in the middle of one."""
    pipeline = ads_pipeline(checkpoint={"every_steps": 4}, process="standing")
    pipeline["job"]["failover"] = {"restarts_max": 50}
    pipeline["train"]["minibatch_rows"] = 40
    project = ads_project(tmp_path / "line", days=DAYS, rows=4_000, pipeline=pipeline)
    chosen, killed, over = random.Random(SEED), list[str](), threading.Event()

    def kill() -> None:
        while len(killed) < KILLS and not over.is_set():
            time.sleep(chosen.uniform(0.05, 2.5))
            victim = chosen.choice(VICTIMS)
            with suppress(KeyError, ProcessLookupError):
                os.kill(processes(project)[victim], signal.SIGKILL)
                killed.append(victim)

    killing = threading.Thread(target=kill)
    killing.start()
    generations = 0
    while generations < 4 or killing.is_alive():
        for number in range(DAYS):
            key, more = f"{FIRST_DAY + number * DAY:%Y-%m-%d}", list[str]()
            if generations:
                more = ["--reprocess", "--on-stale", "train"]
            for _ in range(10):
                asked = ("run", "ads", "--from", key, "--to", key, *more)
                done = project.forebay(*asked, check=False, process=True)
                if done.returncode == 0:
                    break
            assert done.returncode == 0, done.stderr
        generations += 1
        assert trained(project) == expected_of(project, DAYS)
    over.set()
    killing.join()
    assert len(killed) == KILLS
    assert set(killed) == set(VICTIMS)
    assert len(ModelChain(Home(project.home), "ads").links()) == generations * DAYS
    end_runner(runner_of(project))
    assert until(lambda: not processes(project), 20)
