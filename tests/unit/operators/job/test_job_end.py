"""How the end of a job ends a task."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.database_files import bring_back, take_away
from support.jobs import ToldJob, failed

from forebay.errors import ForebayError, InfrastructureError, UsageError
from forebay.executors.job.handle import JobHandle, JobStatus
from forebay.home.paths import Home
from forebay.operators.job import job_end
from forebay.operators.job.job_end import cancel_job, not_cancelled, raise_for_end

START = datetime(2026, 3, 1, tzinfo=UTC)


def told(state: Any, **more: Any) -> JobStatus:
    return JobStatus(job_id="j1", state=state, epoch=1, submitted_at=START, **more)


def test_a_job_on_its_way_or_done_is_no_error() -> None:
    for state in ("submitted", "running", "succeeded"):
        raise_for_end(told(state), "/logs")


NO_DISK, A_BUG = failed("InfrastructureError", "no disk", 4), failed("E", "a bug", 4, final=True)


@pytest.mark.parametrize(
    ("state", "error", "kind", "said"),
    [
        ("failed", None, InfrastructureError, "failed"),
        ("lost", None, InfrastructureError, "lost its supervisor"),
        ("cancelled", None, UsageError, "was cancelled: clear this task to train the window"),
        ("failed", NO_DISK, InfrastructureError, "failed: no disk"),
        ("failed", A_BUG, UsageError, "failed: a bug"),
    ],
)
def test_ends_name_the_logs_and_the_cause_last(
    state: str, error: Any, kind: type[ForebayError], said: str
) -> None:
    with pytest.raises(kind) as found:
        raise_for_end(told(state, error=error), "/logs")
    assert str(found.value) == f"logs: /logs\njob j1 {said}"


def test_a_database_that_comes_back_in_time_hears_of_the_cancel(tmp_path: Path) -> None:
    told = ToldJob(Home(tmp_path / "home"))
    told.tell("running")
    said: list[str] = []
    take_away(told.home)
    threading.Timer(0.3, bring_back, [told.home]).start()
    cancel_job(JobHandle(told.home, told.job_id, 1), said.append)
    assert (told.row.state, said) == ("cancelled", [f"job {told.job_id} is cancelled"])


def test_an_unheard_cancel_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_end, "CANCEL_SECONDS", 0.1)
    told = ToldJob(Home(tmp_path / "home"))
    told.tell("running")
    take_away(told.home)
    with pytest.raises(InfrastructureError, match="has lost its database") as raised:
        cancel_job(JobHandle(told.home, told.job_id, 1), print)
    assert "may still be running, since it could not be cancelled" in str(raised.value)
    assert str(raised.value).endswith("`forebay cancel ads` ends it")
    bring_back(told.home)
    assert told.row.state == "running"


def test_the_command_names_the_line() -> None:
    assert "`forebay cancel ads --line eu-main`" in not_cancelled("ads.eu-main.2026-03-01.g1", "")
    assert "`forebay cancel ads` ends it" in not_cancelled("ads.main.2026-03-01..2026-03-05", "")
