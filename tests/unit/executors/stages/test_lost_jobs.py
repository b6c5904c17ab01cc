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


def test_one_whose_windows_are_trained_has_succeeded(target: LineTarget, job: ToldJob) -> None:
    job.link(10)
    end_trained_jobs(target)
    assert (stored(job).state, stored(job).pids) == ("succeeded", {})
    assert stored(job).ended_at is not None


def test_one_that_has_a_window_to_train_can_go_on(target: LineTarget, job: ToldJob) -> None:
    end_trained_jobs(target)
    assert stored(job).state == "running", "as it was reported last: it is lost"


def test_one_that_lives_is_left_alone(target: LineTarget, job: ToldJob) -> None:
    job.link(10)
    with job.supervised():
        end_trained_jobs(target)
    assert stored(job).state == "running"


def test_one_that_has_ended_stays_as_it_ended(target: LineTarget, job: ToldJob) -> None:
    job.link(10)
    job.tell("cancelled", cancelled_by=1)
    end_trained_jobs(target)
    assert stored(job).state == "cancelled"


def test_another_line_is_not_ours_to_end(target: LineTarget, job: ToldJob) -> None:
    job.link(10)
    end_trained_jobs(LineTarget(target.project, target.pipeline, target.home, "trial"))
    assert stored(job).state == "running"
