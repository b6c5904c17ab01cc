"""All jobs of a home: of which pipeline and line they are, and which windows they train."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.jobs import START

from forebay.executors.job.folder import JobFolder
from forebay.executors.job.folders import (
    StoredJob,
    all_jobs,
    jobs_of,
    jobs_with_window,
    window_jobs,
)
from forebay.executors.job.job_id import range_job_id, window_job_id
from forebay.executors.job.request import JobRequest, JobStatus, State, WindowRequest
from forebay.home.paths import Home

FIRST, SECOND = "2026-03-01", "2026-03-02"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def job(
    home: Home,
    job_id: str,
    line: tuple[str, str],
    windows: dict[str, int],
    state: State = "succeeded",
    minute: int = 0,
) -> str:
    folder = JobFolder(home.job(job_id))
    folder.create()
    JobRequest(
        job_id=job_id,
        pipeline_name=line[0],
        line=line[1],
        home=str(home.root),
        project_root=str(home.root),
        pipeline={},
        sources={},
        windows=[
            WindowRequest(key=key, generation=number, start=START, end=START + timedelta(days=1))
            for key, number in windows.items()
        ],
    ).write(folder.path)
    submitted = datetime.now(UTC) + timedelta(minutes=minute)
    folder.write_status(JobStatus(job_id=job_id, state=state, epoch=1, submitted_at=submitted))
    return job_id


def ids(jobs: Iterable[StoredJob]) -> list[str]:
    return [each.job_id for each in jobs]


def test_pipelines_and_lines_whose_names_run_together_are_kept_apart(home: Home) -> None:
    one = job(home, window_job_id("ads", "eu-main", FIRST, 1), ("ads", "eu-main"), {FIRST: 1})
    other = job(home, window_job_id("ads-eu", "main", FIRST, 1), ("ads-eu", "main"), {FIRST: 1})
    assert one != other
    assert ids(all_jobs(home)) == [other, one]
    assert ids(jobs_of(home, "ads")) == ids(jobs_of(home, "ads", "eu-main")) == [one]
    assert ids(jobs_of(home, "ads-eu", "main")) == [other]
    assert ids(jobs_of(home, "ads", "main")) == []


def test_jobs_with_a_window_newest_first_and_those_of_it_alone(home: Home) -> None:
    line = ("ads", "main")
    first = job(home, window_job_id(*line, FIRST, 1), line, {FIRST: 1}, minute=1)
    both = job(home, range_job_id(*line, FIRST, SECOND), line, {FIRST: 2, SECOND: 1}, minute=3)
    again = job(home, window_job_id(*line, FIRST, 3), line, {FIRST: 3}, minute=2)
    trial = ("ads", "trial")
    other = job(home, window_job_id(*trial, FIRST, 1), trial, {FIRST: 1}, minute=9)
    assert ids(jobs_with_window(home, "ads", FIRST, "main")) == [both, again, first]
    assert ids(jobs_with_window(home, "ads", FIRST)) == [other, both, again, first]
    assert ids(jobs_with_window(home, "ads", SECOND)) == [both]
    assert ids(window_jobs(home, *line, FIRST)) == [first, again]
    assert ids(window_jobs(home, *line, SECOND)) == []
    generations = [each.generation(SECOND) for each in jobs_with_window(home, "ads", FIRST)]
    assert generations == [None, 1, None, None]


@pytest.mark.parametrize(
    ("state", "is_active"), [("submitted", True), ("running", False), ("failed", False)]
)
def test_a_job_of_a_dead_supervisor_is_not_active(
    home: Home, state: State, is_active: bool
) -> None:
    job(home, "j1", ("ads", "main"), {}, state)
    (found,) = all_jobs(home)
    assert found.status.is_active is is_active


def test_a_request_is_read_by_those_who_use_it_only(home: Home) -> None:
    job(home, "j1", ("ads", "main"), {})
    job(home, "j2", ("ads", "main"), {})
    (home.job("j2") / "job.json").write_text("{")
    assert [(each.job_id, each.status.state) for each in all_jobs(home)] == [
        ("j1", "succeeded"),
        ("j2", "succeeded"),
    ]


def test_a_folder_whose_submission_was_cut_off_is_no_job(home: Home) -> None:
    job(home, "j1", ("ads", "main"), {})
    (home.job("j1") / "status.json").unlink()
    assert ids(all_jobs(home)) == []


def test_without_jobs_there_is_none(tmp_path: Path) -> None:
    assert list(all_jobs(Home(tmp_path / "none"))) == []
