"""A line that `forebay up` follows, and its DAG beside it: every row once, and both agree."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.airflow_cluster import Airflow, now
from support.airflow_data import HOUR
from support.airflow_pipelines import Pipeline
from support.growing import BEGIN, DAY, following, links_of, publishing
from support.independent import log_sums
from support.kills import used_rows
from support.there import eventually, there

from forebay.executors.job.stored_jobs import jobs_of
from forebay.home.paths import Home

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1500)]
FIRST, SECOND = "2026-03-02T01", "2026-03-02T02"
LINE = Pipeline("ads", DAY + HOUR, {}, step=HOUR)
FOLLOWER = "follow-ads"


def test_up_follows_a_line_that_declares_it(tmp_path: Path) -> None:
    """Two hours of 150 s; Airflow's own clock is months ahead, so all windows are over for it."""
    followed = following(tmp_path, BEGIN, 24.0)
    project = followed.project
    airflow = Airflow(project)
    with publishing(followed, 3):
        airflow.up()
        try:
            eventually(lambda: used_rows(project, FIRST) > 0, 60)
            pid = there(airflow.components()[FOLLOWER]["pid"])
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: airflow.components()[FOLLOWER]["restarts"] == 1, 30)
            assert "follow-ads" in project.forebay("status").stdout
            eventually(lambda: used_rows(project, SECOND) > 0, 200)
            airflow.unpause(LINE)
            airflow.backfill(LINE, 0, 0)
            airflow.ended(LINE, {0: "success"}, 120)
            assert [link.generation for link in links_of(followed)] == [1], "trained already"
            since = now()
            airflow.backfill(LINE, 0, 0, reprocess="completed")
            airflow.ended(LINE, {0: "success"}, 120, since)
            eventually(lambda: len(links_of(followed)) == 3, 300)
            since = now()
            airflow.backfill(LINE, 1, 1)
            airflow.ended(LINE, {1: "success"}, 120, since)
            eventually(lambda: airflow.components()[FOLLOWER]["state"] == "stopped", 60)
        except BaseException:
            print(airflow.diagnosis(LINE))
            raise
        finally:
            airflow.down()
    names = [(link.window, link.generation) for link in links_of(followed)]
    assert names == [(FIRST, 1), (FIRST, 2), (SECOND, 1)]
    newest = links_of(followed)[-1]
    assert there(newest.parent).generation == 2
    assert newest.seen["clicks"].model_dump() == log_sums(project.log, 0, 2**62)
    assert newest.seen["clicks"].rows == followed.published
    assert all(job.status.ended for job in jobs_of(Home(project.home), "ads"))
