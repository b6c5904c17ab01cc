"""How the end of a job ends a task."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from support.jobs import failed

from forebay.errors import ForebayError, InfrastructureError, UsageError
from forebay.executors.job.handle import JobStatus
from forebay.operators.job.job_end import raise_for_end

START = datetime(2026, 3, 1, tzinfo=UTC)


def told(state: Any, **more: Any) -> JobStatus:
    return JobStatus(job_id="j1", state=state, epoch=1, submitted_at=START, **more)


@pytest.mark.parametrize("state", ["submitted", "running", "succeeded"])
def test_a_job_on_its_way_or_done_is_no_error(state: str) -> None:
    raise_for_end(told(state), "/logs")


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (told("failed"), InfrastructureError, "job j1 failed; logs: /logs"),
        (told("lost"), InfrastructureError, "job j1 lost its supervisor; logs: /logs"),
        (told("cancelled"), UsageError, "job j1 was cancelled: clear this task"),
        (
            told("failed", error=failed("InfrastructureError", "no disk", 4)),
            InfrastructureError,
            "job j1 failed: no disk\nlogs: /logs",
        ),
        (told("failed", error=failed("E", "a bug", 4, final=True)), UsageError, "a bug"),
    ],
)
def test_how_a_job_ended_is_told_with_its_logs(
    status: JobStatus, kind: type[ForebayError], message: str
) -> None:
    with pytest.raises(kind) as found:
        raise_for_end(status, "/logs")
    assert message in str(found.value)
