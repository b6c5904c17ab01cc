"""A place for the tasks that submit and follow jobs, in every test of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.job_tasks import Place

from forebay.home.database.format import record_format
from forebay.operators.stages import job_operator, training_executors
from forebay.operators.turn import previous_run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    record_format(made.home)
    monkeypatch.setenv("FOREBAY_HOME", str(made.home.root))
    monkeypatch.setattr(previous_run, "runs_of", made.runs.of)
    monkeypatch.setattr(previous_run, "task_states", made.runs.states)
    monkeypatch.setattr(previous_run, "any_runs_until", made.runs.until)
    monkeypatch.setattr(previous_run, "latest_active_before", lambda *_: None)
    monkeypatch.setattr(job_operator, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(training_executors, "_POLL_SECONDS", 0.02)
    return made
