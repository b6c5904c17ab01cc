"""What `forebay run` tells while a job goes on."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from forebay.commands.run import _Shown
from forebay.executors.job.progress import Progress
from forebay.executors.job.request import JobStatus


def test_an_interrupted_run_says_that_its_job_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _Shown(io.StringIO())
    shown.interrupted()
    assert not capsys.readouterr().err, "there is no job yet"
    status = JobStatus(
        job_id="ads-1",
        state="running",
        epoch=1,
        pids={"supervisor": 4711},
        submitted_at=datetime.now(UTC),
    )
    shown.progress(Progress(), status)
    shown.interrupted()
    assert capsys.readouterr().err.strip() == (
        "job ads-1 goes on: the same command follows it again, `forebay cancel` ends it"
    )
