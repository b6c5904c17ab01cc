"""Rows that arrive between two plans: trained on once, in the next window, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import independent
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    Topic,
    ads_project,
    clicks_source,
    publish_day,
    rows_of_day,
    write_history,
    write_log,
)
from support.there import there

from forebay.datatasks.sources.kafka.producer import publish_batches
from forebay.datatasks.sources.log.writer import LogWriter

pytestmark = pytest.mark.usefixtures("jobs_here")

ROWS = 2_000
LATE = 70
DAYS = ("2026-03-01", "2026-03-02")


def late_rows() -> pa.Table:
    return rows_of_day(FIRST_DAY, LATE, seed=900)


def late_to_the_log(project: Project) -> None:
    """Segments of one partition, stamped inside the window that is trained already."""
    before = FIRST_DAY + DAY - timedelta(milliseconds=1)
    LogWriter(project.log, 0).append(late_rows(), before)
    write_log(project.log, FIRST_DAY + DAY, ROWS, seed=101)


def late_to_the_topic(project: Project) -> None:
    topic = there(project.topic)
    at = FIRST_DAY + timedelta(hours=5)
    publish_batches(topic.bootstrap, topic.name, [(late_rows(), at, 0)])
    publish_day(topic, FIRST_DAY + DAY, ROWS, seed=101)


def runs(project: Project, late: Callable[[Project], None]) -> list[dict[str, Any]]:
    """The first window, then what is late, then the second; and the first one once more."""
    first = project.run(DAYS[0], DAYS[0])
    write_history(project.files, FIRST_DAY, ROWS, seed=100)
    late(project)
    second = project.run(DAYS[1], DAYS[1])
    again = project.run(DAYS[0], DAYS[0], "--reprocess")
    return [first, second, again]


def assert_each_row_once(found: list[dict[str, Any]]) -> None:
    first, second, again = (run["windows"][0]["sources"]["clicks"] for run in found)
    assert [each["trained_rows"] for each in (first, second, again)] == [ROWS, ROWS + LATE, ROWS]
    assert [each["late_rows"] for each in (first, second, again)] == [0, LATE, 0]
    assert [each["odd_timestamps"] for each in (first, second, again)] == [0, 0, 0]
    assert first["offsets"] == again["offsets"]
    ends = {partition: end for partition, (_, end) in first["offsets"].items()}
    assert {partition: begin for partition, (begin, _) in second["offsets"].items()} == ends
    told = f"{LATE} rows from before the window"
    notes = [[note for note in run["notes"] if told in note] for run in found]
    assert [len(each) for each in notes] == [0, 1, 0], [run["notes"] for run in found]


@pytest.mark.guarantee(
    "a record of a stream arrives after the window of its time was planned",
    "nothing; it is trained on in the next window and counted (`late_rows`)",
)
def test_late_segments_of_a_log(tmp_path: Path) -> None:
    project = ads_project(tmp_path, rows=ROWS)
    found = runs(project, late_to_the_log)
    assert_each_row_once(found)
    day = int(FIRST_DAY.timestamp() * 1000)
    every = independent.log_sums(project.log, day, day + 2 * 86_400_000)
    assert found[1]["seen"]["clicks"] == every


def trim(project: Project, days: int) -> None:
    before = int((FIRST_DAY + days * DAY).timestamp() * 1000)
    for segment in project.log.glob("*/*.arrow"):
        if int(segment.stem.rpartition("-")[2]) < before:
            segment.unlink()


def refused(project: Project, *arguments: str) -> str:
    done = project.forebay("run", "ads", *arguments, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    return done.stderr


@pytest.mark.guarantee(
    "the same, for a window that another line has not trained",
    "red, with what to do: a line that begins later, or `starts`",
)
@pytest.mark.guarantee(
    "segments of a log are trimmed, or records of a topic expire, after their windows are trained",
    "nothing; `forebay plan` notes them, and a reprocess of these windows is red",
)
@pytest.mark.chaos
def test_a_log_is_trimmed_after_its_windows_are_trained(tmp_path: Path) -> None:
    """What is trained stays; what another line lacks is refused, and both ways out lead on."""
    project = ads_project(tmp_path, rows=200, days=3)
    first, second, third = "2026-03-01", "2026-03-02", "2026-03-03"
    project.run(first, second, "--line", "b")
    project.run(first, first)

    trim(project, 1)
    planned = project.forebay("plan", "ads", "--from", first, "--to", third, "--output", "json")
    clicks = [each for each in json.loads(planned.stdout) if each["source"] == "clicks"]
    assert [each["rows"] for each in clicks] == [200, 200, 200]
    assert f"window {first}: rows of source 'clicks' have been deleted" in planned.stderr
    assert "the offsets 0 to" in refused(
        project, "--from", first, "--to", first, "--line", "b", "--reprocess"
    )

    trim(project, 2)
    why_not = refused(project, "--from", second, "--to", second)
    for text in ("were deleted", "may begin at a later window", "`starts: 2026-03-03T00:00Z`"):
        assert text in why_not
    assert "were deleted" in project.forebay("why", "ads", second).stdout
    later = project.run(third, third, "--line", "c")
    assert later["windows"][0]["sources"]["clicks"]["trained_rows"] == 200

    project.write_source("clicks", clicks_source(starts="2026-03-03T00:00Z"))
    rest = project.run(second, third)
    found = [each["sources"]["clicks"]["trained_rows"] for each in rest["windows"]]
    assert found == [0, 200], "the line goes on without what is gone"


@pytest.mark.kafka
def test_late_records_of_a_topic(
    tmp_path: Path, kafka_bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = Topic(kafka_bootstrap, new_topic(2))
    project = ads_project(tmp_path, rows=ROWS, topic=topic)
    assert_each_row_once(runs(project, late_to_the_topic))
