"""The driver of a reading opens nothing that stores positions: those are the trainer's."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.data_path import DataPath
from support.projects import DAY, FIRST_DAY, write_history, write_log

from forebay.executors.driver import driver
from forebay.executors.job.request import JobRequest


@pytest.mark.parametrize("commits", [False, True])
def test_opens_for_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: bool) -> None:
    write_history(tmp_path / "data/history", FIRST_DAY - DAY, 100)
    write_log(tmp_path / "data/clicks", FIRST_DAY, 100)
    path = DataPath.of(tmp_path)
    path.plan("2026-03-01", "2026-03-01")
    request = JobRequest.read(path.job_dir)
    assert request.commits, "a job does"
    asked = request.model_copy(update={"commits": commits})
    assert asked.fingerprint == request.fingerprint
    asked.write(path.job_dir)
    opened = []
    monkeypatch.setattr(driver, "committing_sources", lambda each: opened.append(each) or {})
    made = driver.Driver(path.job_dir, 1)
    made.start()
    made.stop()
    assert len(opened) == int(commits)
