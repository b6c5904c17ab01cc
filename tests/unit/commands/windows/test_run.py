"""What `forebay run` shows while a job runs, and what it says when it is interrupted."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from forebay.commands.shared.live_line import LiveLine
from forebay.commands.windows.run import _progress_text, _Seen
from forebay.executors.job.measures import Progress
from forebay.executors.job.request import JobStatus

ROWS = {"flights_table": 1_343, "flights_files": 600, "departures": 1_906}
WINDOWS = {"window": "2013-05-30_2013-06-01", "windows_done": 0, "windows_total": 14, "step": 18}
PACE = {"rows": ROWS, "rows_per_second": 7_086.4, "lag_seconds": 18_000}
PROGRESS = Progress.model_validate(WINDOWS | PACE)
ALL = (
    "0/14 windows  2013-05-30_2013-06-01  step 18  flights_table 1,343  "
    "flights_files 600  departures 1,906  7,086 rows/s  lag 5h  restarts 2"
)


def seen(cancel: str = "forebay cancel ads") -> _Seen:
    return _Seen(LiveLine(io.StringIO(), live=False), cancel)


def test_an_interrupted_run_says_that_its_job_continues(capsys: pytest.CaptureFixture[str]) -> None:
    shown = seen("forebay cancel ads --line trial")
    shown.interrupted()
    assert capsys.readouterr().err == (
        "interrupted: no job was started; the same command starts again\n"
    )
    shown.submitted("ads-1")
    shown.interrupted()
    assert capsys.readouterr().err.splitlines() == [
        "interrupted: job ads-1 continues in the background",
        "to follow it: run the same command again",
        "its logs:     forebay jobs logs -f ads-1",
        "to end it:    forebay cancel ads --line trial",
        "              (a later run continues from its newest checkpoint)",
    ]


def test_a_run_whose_job_is_over_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = seen()
    shown.submitted("ads-1")
    now = datetime.now(UTC)
    status = JobStatus(job_id="ads-1", state="succeeded", epoch=1, submitted_at=now)
    shown.progress(PROGRESS, status)
    shown.interrupted()
    assert "job ads-1 has ended; the same command shows its results" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (None, ALL),
        (79, "0/14 windows  2013-05-30_2013-06-01  step 18  7,086 rows/s  lag 5h  restarts 2"),
        (50, "0/14 windows  2013-05-30_2013-06-01  step 18"),
        (20, "0/14 windows"),
    ],
)
def test_progress_is_as_wide_as_the_terminal(width: int | None, shown: str) -> None:
    found = _progress_text(PROGRESS, 2, width)
    assert width is None or len(found) <= width
    assert found == shown


def test_rows_of_all_sources_where_there_is_no_place_for_each() -> None:
    assert "  3,849 rows  7,086 rows/s" in _progress_text(PROGRESS, 0, 79)
