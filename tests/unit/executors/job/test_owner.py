"""Whose job it is, as its folder tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import ToldJob

from forebay.errors import DataError
from forebay.executors.job.owner import OWNER_NAME, jobs_owned, own
from forebay.home.paths import Home

RUN = "ads/manual__1"


@pytest.fixture
def job(tmp_path: Path) -> ToldJob:
    return ToldJob(Home(tmp_path))


def owned(job: ToldJob, run: str = RUN) -> list[tuple[str, int]]:
    return [(handle.job_id, handle.epoch) for handle in jobs_owned(job.home, run)]


def test_a_job_belongs_to_the_run_that_owns_its_newest_epoch(job: ToldJob) -> None:
    job.tell("running")
    assert owned(job) == []
    handle = job.take_over()
    own(handle, RUN)
    assert owned(job) == [(job.job_id, handle.epoch)]
    assert owned(job, "ads/manual__2") == []


def test_it_is_nobodys_from_an_attachment_on_until_its_owner_is_told(job: ToldJob) -> None:
    job.tell("running")
    own(job.take_over(), RUN)
    later = job.take_over()
    assert owned(job) == []
    own(later, "ads/manual__2")
    assert owned(job) == []
    assert owned(job, "ads/manual__2") == [(job.job_id, later.epoch)]


def test_an_older_owner_says_nothing_any_more(job: ToldJob) -> None:
    job.tell("running")
    older, newer = job.take_over(), job.take_over()
    own(newer, RUN)
    own(older, "ads/manual__2")
    assert owned(job) == [(job.job_id, newer.epoch)]


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_a_job_that_has_ended_is_nobodys(job: ToldJob, state: str) -> None:
    own(job.take_over(), RUN)
    job.tell(state)
    assert owned(job) == []


def test_the_same_run_id_of_another_dag_is_another_run(job: ToldJob) -> None:
    job.tell("running")
    own(job.take_over(), RUN)
    assert owned(job, "clicks/manual__1") == []


def test_a_damaged_file_is_named(job: ToldJob) -> None:
    job.tell("running")
    path = job.folder.path / OWNER_NAME
    path.write_text("{")
    with pytest.raises(DataError, match=str(path)):
        owned(job)


def test_without_jobs_there_is_nothing_to_own(tmp_path: Path) -> None:
    assert list(jobs_owned(Home(tmp_path / "none"), RUN)) == []
