"""Jobs of a home: their pipeline and line, the windows they train, and their state."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete
from support.jobs import folder_of, report_job, request, store_job

from forebay.errors import ConfigError, UsageError
from forebay.executors.job.request import State
from forebay.executors.job.stored_jobs import (
    StoredJob,
    find_job,
    jobs_of,
    jobs_owned,
    jobs_with_window,
    stored_job,
    window_jobs,
)
from forebay.executors.job.submit import submit
from forebay.home.database.identity import MARKER_NAME, Marker
from forebay.home.database.open import database_of
from forebay.home.database.tables import job_windows, jobs
from forebay.home.job_id import range_job_id, window_job_id
from forebay.home.paths import Home
from forebay.system.files.locks import locked

FIRST, SECOND = "2026-03-01", "2026-03-02"
RUN = "ads/manual__1"


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
    run: str | None = None,
) -> str:
    made = request(home, job_id, windows, *line)
    store_job(made, state, run, submitted_at=datetime.now(UTC) + timedelta(minutes=minute))
    return job_id


def ids(jobs: Iterable[StoredJob]) -> list[str]:
    return [each.job_id for each in jobs]


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
    assert ids(window_jobs(home, *line, FIRST)) == [again, first]
    assert ids(window_jobs(home, *line, SECOND)) == []
    generations = [each.generation(SECOND) for each in jobs_with_window(home, "ads", FIRST)]
    assert generations == [None, 1, None, None]


def test_jobs_that_have_not_ended(home: Home) -> None:
    line = ("ads", "main")
    for number, state in enumerate(("submitted", "running", "succeeded", "failed", "cancelled")):
        job(home, state, line, {}, state, number, RUN)  # type: ignore[arg-type]
    assert ids(jobs_of(home, *line, unended=True)) == ["running", "submitted"]
    assert ids(jobs_owned(home, RUN)) == ["running", "submitted"]
    assert ids(jobs_owned(home, "clicks/manual__1")) == [], "the same run id of another DAG"


@pytest.mark.parametrize("state", ["submitted", "running", "succeeded", "failed", "cancelled"])
def test_a_job_without_an_end_whose_lock_is_free_is_lost(home: Home, state: State) -> None:
    job(home, "j1", ("ads", "main"), {}, state)
    alone = "lost" if state in {"submitted", "running"} else state
    assert stored_job(home, "j1").status.state == alone
    with locked(folder_of(stored_job(home, "j1")).supervisor_lock, 1.0):
        assert stored_job(home, "j1").status.state == state


@pytest.mark.parametrize("state", ["succeeded", "running"])
def test_who_changes_is_not_lost(home: Home, monkeypatch: pytest.MonkeyPatch, state: State) -> None:
    job(home, "j1", ("ads", "main"), {}, "submitted")
    looks = []

    def changes(_path: Path) -> bool:
        looks.append(1)
        if len(looks) == 1:
            report_job(home, "j1", 1, state)
        return len(looks) > 1

    monkeypatch.setattr("forebay.executors.job.folder.is_held", changes)
    assert stored_job(home, "j1").status.state == state


def test_a_job_that_goes_during_a_look_is_none(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    job(home, "j1", ("ads", "main"), {}, "running")
    found = stored_job(home, "j1")
    for table in (job_windows, jobs):
        database_of(home).transact(lambda rows, table=table: rows.execute(delete(table)))
    with pytest.raises(UsageError, match="no job 'j1'"):
        _ = found.status


def test_no_file_of_a_job_is_opened_to_find_it(home: Home) -> None:
    job(home, "j1", ("ads", "main"), {FIRST: 1})
    (home.job("j1") / "job.json").unlink()
    assert ids(jobs_with_window(home, "ads", FIRST)) == ["j1"]


def test_without_jobs_there_is_none(tmp_path: Path) -> None:
    nowhere = Home(tmp_path / "none")
    assert jobs_of(nowhere, "ads") == jobs_owned(nowhere, RUN) == []
    assert find_job(nowhere, "j1") is None
    with pytest.raises(UsageError, match="no job 'j1'"):
        stored_job(nowhere, "j1")
    assert not nowhere.root.exists()


def test_no_job_is_made_in_a_home_of_another_version(tmp_path: Path) -> None:
    marker = Marker(id="x", format="4", database="sqlite")
    (tmp_path / MARKER_NAME).write_text(marker.model_dump_json())
    home = Home(tmp_path)
    with pytest.raises(ConfigError, match=r"has format 4 \(home\.json\)"):
        submit(home, request(home, "j", {}), ("false",))
    assert [path.name for path in tmp_path.iterdir()] == [MARKER_NAME]
