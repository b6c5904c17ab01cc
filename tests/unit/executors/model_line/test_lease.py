"""One job at a time trains a line, and everybody can see which one."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.errors import LineBusyError
from forebay.executors.job.request import JobRequest
from forebay.executors.model_line.lease import LEASE_NAME, line_holder, take_lease
from forebay.home.paths import Home


def request(home: Home, job_id: str = "job-1") -> JobRequest:
    return JobRequest(
        job_id=job_id,
        pipeline_name="ads",
        home=str(home.root),
        project_root=str(home.root),
        pipeline={},
        sources={},
        windows=[],
    )


def test_a_line_is_held_until_the_lease_is_released(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert line_holder(home, "ads", "main") == ""
    lease = take_lease(request(home))
    assert line_holder(home, "ads", "main") == "job-1"
    assert line_holder(home, "ads", "other") == ""
    with pytest.raises(LineBusyError, match="job job-1 trains line 'main' of pipeline 'ads'"):
        take_lease(request(home, "job-2"))
    lease.release()
    assert line_holder(home, "ads", "main") == ""
    take_lease(request(home, "job-2")).release()


def test_a_holder_that_has_not_written_its_name_yet(tmp_path: Path) -> None:
    home = Home(tmp_path)
    lease = take_lease(request(home))
    (home.line("ads", "main") / LEASE_NAME).write_text("")
    assert line_holder(home, "ads", "main") == "another job"
    with pytest.raises(LineBusyError, match="job another job trains"):
        take_lease(request(home, "job-2"))
    lease.release()
