"""The driver of a reading opens nothing that stores positions: those are the trainer's."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.data_path import DataPath
from support.projects import DAY, FIRST_DAY, write_history, write_log

from forebay.executors.driver import driver
from forebay.executors.job.folder import JobFolder
from forebay.executors.link.local import LocalLink


@pytest.mark.parametrize("commits", [False, True])
def test_opens_for_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: bool) -> None:
    write_history(tmp_path / "data/history", FIRST_DAY - DAY, 100)
    write_log(tmp_path / "data/clicks", FIRST_DAY, 100)
    path = DataPath.of(tmp_path)
    path.plan("2026-03-01", "2026-03-01")
    request = JobFolder(path.job_dir).request()
    assert request.commits, "a job does"
    asked = request.model_copy(update={"commits": commits})
    assert asked.fingerprint == request.fingerprint
    JobFolder(path.job_dir).write(asked)
    opened = []
    monkeypatch.setattr(driver, "committing_sources", lambda each: opened.append(each) or {})
    made = driver.Driver(LocalLink(path.job_dir, "driver"), 1)
    made.start()
    made.stop()
    assert len(opened) == int(commits)
