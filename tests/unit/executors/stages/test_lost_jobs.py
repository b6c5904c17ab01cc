"""Jobs that were killed after their last window: they end as soon as their state is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.jobs import ToldJob
from support.projects import declared_project

from forebay.config.load import load_project
from forebay.executors.stages.lost_jobs import end_trained_jobs
from forebay.executors.stages.target import LineTarget
from forebay.home.paths import Home


@pytest.fixture
def target(tmp_path: Path) -> LineTarget:
    declared_project(tmp_path)
    project = load_project(tmp_path / "config")
    return LineTarget(project, project.pipeline("ads"), Home(tmp_path / "home"), "main")


@pytest.fixture
def job(target: LineTarget) -> ToldJob:
    made = ToldJob(target.home)
    made.tell("running", ended_at=None, pids={"supervisor": 1})
    return made


def stored(job: ToldJob) -> Any:
    return job.row.status


def test_only_a_lost_job_whose_windows_are_trained_is_ended(
    target: LineTarget, job: ToldJob
) -> None:
    end_trained_jobs(target)
    assert stored(job).state == "running", "it has a window to train: it is lost, and can go on"
    job.link(10)
    end_trained_jobs(LineTarget(target.project, target.pipeline, target.home, "trial"))
    assert stored(job).state == "running", "of another line"
    with job.supervised():
        end_trained_jobs(target)
    assert stored(job).state == "running", "it lives"
    end_trained_jobs(target)
    assert (stored(job).state, stored(job).pids) == ("succeeded", {})
    assert stored(job).ended_at is not None
    job.tell("cancelled", cancelled_by=1)
    end_trained_jobs(target)
    assert stored(job).state == "cancelled", "as it ended"
