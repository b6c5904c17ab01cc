"""The line about a job that a task's log shows every ten seconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.jobs import ToldJob

from forebay.executors.job.measures import Progress
from forebay.executors.job.request import JobStatus
from forebay.executors.job.stored_jobs import stored_job
from forebay.home.paths import Home
from forebay.operators.job import progress_line as module
from forebay.operators.job.progress_line import ProgressLines, in_words, progress_line

NOW = 1_000.0


def status(**restarts: int) -> JobStatus:
    return JobStatus(
        job_id="ads.main.2026-03-01.g1",
        state="running",
        epoch=1,
        restarts=dict.fromkeys(("supervisor", "driver", "data", "trainer"), 0) | restarts,
        submitted_at=datetime(2026, 3, 2, tzinfo=UTC),
    )


def test_all_that_a_person_asks() -> None:
    told = Progress(
        window="2026-03-01",
        step=12_345,
        sealed_step=12_200,
        rows={"history": 6_100, "clicks": 3_900},
        rows_per_second=5_678.4,
        lag_seconds=10_800,
        sealed_at=NOW - 8.4,
        reported_at=NOW - 1,
    )
    assert progress_line(status(trainer=1, data=2), told, NOW) == (
        "window 2026-03-01: step 12,345, 5,678 rows/s, lag 3 h; history 61%, clicks 39%; "
        "sealed at step 12,200 8 s ago; restarts: data 2, trainer 1"
    )


def test_a_line_stays_short_whatever_is_read() -> None:
    rows = {f"source_{number}": 100 * number for number in range(1, 11)}
    told = Progress(window="2026-03-01", step=1, rows=rows, sealed_at=NOW, reported_at=NOW)
    line = progress_line(status(), told, NOW)
    assert "; source_10 18%, source_9 16%, source_8 15%, 7 others 51%; " in line
    assert len(line) < 120


def test_a_job_that_begins() -> None:
    assert progress_line(status(), None, NOW) == "job ads.main.2026-03-01.g1 is starting"
    starting = progress_line(status(driver=1), Progress(), NOW)
    assert starting.endswith("is starting; restarts: driver 1")
    waits = Progress(window="2026-03-01", lag_seconds=86_400, rows={"history": 0, "clicks": 0})
    first = progress_line(status(), waits, NOW)
    assert first == "window 2026-03-01: step 0, 0 rows/s, lag 1 d; no rows yet; no seal"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (5_400, "1.5 h"), (200_000, "2.31 d")],
)
def test_spans_in_their_largest_unit(seconds: float, text: str) -> None:
    assert in_words(seconds) == text


def test_one_line_every_ten_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = ToldJob(Home(tmp_path)), [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    lines, job = ProgressLines(), stored_job(told.home, told.job_id)
    for seconds, due in ((0, True), (9.9, False), (0.2, True), (10, True)):
        now[0] += seconds
        assert (lines.due(job) is not None) == due


def test_what_the_supervisor_stored_is_shown_whatever_the_folder_holds(tmp_path: Path) -> None:
    told = ToldJob(Home(tmp_path))
    told.progress(step=9, rows={"clicks": 4}, sealed_step=8, sealed_at=time.time() - 90)
    (told.folder.path / "progress.json").write_text("{damaged")
    assert ProgressLines().due(stored_job(told.home, told.job_id)) == (
        "window 2026-03-01: step 9, 0 rows/s, lag 0 s; clicks 100%; sealed at step 8 1.5 min ago"
    )


def test_a_seal_by_a_clock_that_is_ahead() -> None:
    told = Progress(window="w", step=9, sealed_step=8, sealed_at=NOW + 500)
    assert progress_line(status(), told, NOW).endswith("sealed at step 8 0 s ago")
    unknown = Progress(window="w", step=9, sealed_step=8)
    assert progress_line(status(), unknown, NOW).endswith("sealed at step 8")


def test_after_a_while_no_step_is_told_instead_of_the_speed() -> None:
    told = Progress(window="w", step=1, rows={"a": 1}, rows_per_second=5.0, reported_at=NOW)
    assert "step 1, 5 rows/s, lag" in progress_line(status(), told, NOW + 9.9)
    assert "step 1, no step for 10 s, lag" in progress_line(status(), told, NOW + 10)
    assert "step 1, 5 rows/s, lag" in progress_line(status(), told, NOW - 50), "a clock is behind"
