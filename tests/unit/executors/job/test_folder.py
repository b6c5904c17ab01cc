"""A job's folder over several submissions: what is kept, what is new."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from forebay.executors.job.folder import PROGRESS_NAME, JobFolder
from forebay.executors.job.request import JobRequest, JobStatus

EARLIER = datetime(2026, 3, 1, tzinfo=UTC)
NONE = dict.fromkeys(("supervisor", "driver", "data", "trainer"), 0)


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    found = JobFolder(tmp_path / "jobs" / "job-1")
    found.create()
    return found


def prepare(folder: JobFolder, epoch: int) -> JobStatus:
    request = JobRequest(
        job_id="job-1",
        pipeline_name="ads",
        home=str(folder.path),
        project_root=str(folder.path),
        pipeline={},
        sources={},
        windows=[],
    )
    (folder.path / PROGRESS_NAME).write_text("{}")
    (folder.path / "endpoints" / "data-0").write_text("here")
    folder.request_cancel(1)
    folder.prepare(request, epoch)
    status = folder.stored_status()
    assert status is not None
    assert not list((folder.path / "endpoints").iterdir())
    assert folder.cancel_request() is None
    return status


def stored(folder: JobFolder, state: Any, **more: Any) -> None:
    status = JobStatus(job_id="job-1", state=state, epoch=1, submitted_at=EARLIER, **more)
    folder.write_status(status)


def token(folder: JobFolder) -> str:
    return (folder.path / "token").read_text()


def test_a_first_submission(folder: JobFolder) -> None:
    assert (folder.epoch(), folder.stored_status()) == (0, None)
    assert [folder.next_epoch(), folder.next_epoch(), folder.epoch()] == [1, 2, 2]
    status = prepare(folder, 2)
    assert (status.state, status.epoch, status.restarts, status.ends) == ("submitted", 2, NONE, {})
    assert not (folder.path / PROGRESS_NAME).exists()
    assert (folder.path / "token").stat().st_mode & 0o777 == 0o600
    assert len(token(folder)) == 43, "32 bytes"
    assert folder.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_after_an_end_everything_is_new(folder: JobFolder, state: str) -> None:
    stored(folder, state, restarts=NONE | {"data": 2}, ends={"data-0": 2}, started_at=EARLIER)
    status = prepare(folder, 3)
    assert (status.restarts, status.ends) == (NONE, {})
    assert not (folder.path / PROGRESS_NAME).exists()


def test_after_a_lost_supervisor_the_run_goes_on(folder: JobFolder) -> None:
    stored(folder, "running", restarts=NONE | {"data": 2}, ends={"data-0": 2}, started_at=EARLIER)
    first = token(folder) if (folder.path / "token").exists() else ""
    status = prepare(folder, 3)
    assert status.restarts == NONE | {"data": 2, "supervisor": 1}
    assert status.ends == {"data-0": 2}
    assert (folder.path / PROGRESS_NAME).exists()
    assert token(folder) != first


def test_a_supervisor_that_never_ran_is_no_loss(folder: JobFolder) -> None:
    stored(folder, "submitted", restarts=NONE | {"data": 2})
    assert prepare(folder, 2).restarts == NONE | {"data": 2}


def test_what_a_stored_status_means_without_a_supervisor(folder: JobFolder) -> None:
    assert folder.status() is None
    for state in ("succeeded", "failed", "cancelled"):
        stored(folder, state)
        assert folder.status() == folder.stored_status()
    stored(folder, "running", started_at=EARLIER)
    assert seen_state(folder) == "lost"
    stored(folder, "submitted")
    assert seen_state(folder) == "lost", "submitted long ago"
    running = JobStatus(job_id="job-1", state="running", epoch=1, submitted_at=datetime.now(UTC))
    folder.write_status(running.model_copy(update={"state": "submitted"}))
    assert seen_state(folder) == "submitted", "its supervisor is starting"
    folder.write_status(running)
    assert seen_state(folder) == "lost", "it ran, and nobody holds the lock"


def seen_state(folder: JobFolder) -> str:
    seen = folder.status()
    assert seen is not None
    return seen.state


@pytest.mark.parametrize("ends", ["succeeded", None])
def test_a_job_that_ends_during_the_look_is_not_lost(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch, ends: str | None
) -> None:
    stored(folder, "running")

    def ended(_path: Path) -> bool:
        if ends is None:
            (folder.path / "status.json").unlink()
        else:
            stored(folder, ends)
        return False

    monkeypatch.setattr("forebay.executors.job.folder.is_held", ended)
    found = folder.status()
    assert (found.state if found else None) == ends
