"""Payloads that kill their reader: found, named, set aside by policy, and the rest is exact.

The reader is the real one plus one call, which ends the process at a marker.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import independent
from support.kill_cases import WINDOW, expected
from support.killing_code import MARKER, KillingCode, mark_row_group, mark_segment, publish_marked
from support.kills import kill_role, log_of, no_process_left, running, status, summary_of
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    Topic,
    ads_pipeline,
    ads_project,
    clicks_source,
    history_source,
    publish_day,
    topic_source,
)
from support.truth_rows import serves

NewTopic = Callable[..., str]
ROWS = 2_000
# The whole test takes 16 s on two quiet cores; three workers on slower ones took 31 s to find all.
FOUND_SECONDS = 60.0
RUN = ("run", "ads", "--from", WINDOW, "--to", WINDOW)
FIRST_MS = int(FIRST_DAY.timestamp() * 1000)
END_MS = int((FIRST_DAY + DAY).timestamp() * 1000)


def log_project(tmp_path: Path, policy: str = "dead_letter", **job: Any) -> Project:
    project = ads_project(tmp_path, rows=ROWS, pipeline=ads_pipeline(**job))
    project.write_source("clicks", clicks_source(bad_rows=policy))
    return project


def letters(project: Project) -> list[dict[str, Any]]:
    return json.loads(project.forebay("dead", "show", "ads", "--output", "json").stdout)


def without_segments(project: Project, *paths: Path) -> dict[str, independent.Sums]:
    kept = {path: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    found = expected(project)
    for path, content in kept.items():
        path.write_bytes(content)
    return found


def seconds_to_find(project: Project) -> float:
    """From the first death to the last poison, by the logs."""
    died = [line for line in log_of(project, "supervisor").splitlines() if "was ended by" in line]
    said = log_of(project, "data-0").splitlines()
    found = [line for line in said if "the process that read it was ended by" in line]
    first, last = (datetime.fromisoformat(line.partition(",")[0]) for line in (died[0], found[-1]))
    return (last - first).total_seconds()


def rows_in(path: Path) -> int:
    return int(path.stem.split("-")[1])


def assert_dead(summary: dict[str, Any], source: str, dead: int, trained: int) -> None:
    found = summary["windows"][0]["sources"][source]
    assert summary["rows_agree"] is True
    assert (found["dead_letter_rows"], found["trained_rows"]) == (dead, trained)
    assert found["served_rows"] == dead + trained


def test_segments_and_a_row_group_are_dead_letters(tmp_path: Path) -> None:
    """In three tasks that one data executor reads at the same time, two of them in one task."""
    project = log_project(tmp_path, failover={"restarts_max": 0})
    project.write_source("history", history_source(bad_rows="dead_letter"))
    code = KillingCode(project, tmp_path / "code")
    poisons = [mark_segment(project, 3), mark_segment(project, 4), mark_segment(project, 9, 1)]
    path, first, end = mark_row_group(project, group=3, rows=150)
    summary = project.run(WINDOW, WINDOW)
    assert seconds_to_find(project) < FOUND_SECONDS
    dead = sum(map(rows_in, poisons))
    assert_dead(summary, "clicks", dead, ROWS - dead)
    assert_dead(summary, "history", end - first, ROWS - (end - first))
    name = Path(path).name
    kept = f"not (filename like '%{name}' and file_row_number between {first} and {end - 1})"
    day = f"date={FIRST_DAY - DAY:%Y-%m-%d}/*.parquet"
    assert summary["seen"] == {
        "clicks": without_segments(project, *poisons)["clicks"],
        "history": independent.parquet_sums(project.files, kept, day),
    }
    shown = letters(project)
    assert sum(letter["rows"] for letter in shown) == dead + end - first
    assert all("SIGABRT" in letter["reason"] for letter in shown)
    by_file = {letter["file"]: letter for letter in shown}
    group = by_file.pop(path)
    assert (group["source"], group["row_group"], group["row"]) == ("history", 3, first)
    assert by_file.keys() == {one.relative_to(project.log).as_posix() for one in poisons}
    assert code.deaths()[0] <= len(shown)
    assert no_process_left(project)


@pytest.mark.chaos
def test_it_is_red_and_named_by_policy(tmp_path: Path) -> None:
    project = log_project(tmp_path, "fail")
    KillingCode(project, tmp_path / "code")
    poison = mark_segment(project, -1)
    for _ in range(2):  # the second time nobody has to die again to name it
        done = project.forebay(*RUN, check=False)
        assert done.returncode == 3, done.stderr
        assert poison.relative_to(project.log).as_posix() in done.stderr
        assert "SIGABRT" in done.stderr
        assert "bad_rows: dead_letter" in done.stderr
        assert no_process_left(project)
    assert not serves(project.home, "ads")
    project.write_source("clicks", clicks_source(bad_rows="dead_letter"))
    summary = project.run(WINDOW, WINDOW)
    assert_dead(summary, "clicks", rows_in(poison), ROWS - rows_in(poison))
    assert summary["seen"] == without_segments(project, poison)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.chaos
def test_a_death_that_does_not_come_again_is_nobodys(tmp_path: Path, number: int) -> None:
    """One SIGKILL is not even looked into."""
    project = log_project(tmp_path)
    code = KillingCode(project, tmp_path / "code", number, deaths_max=1)
    mark_segment(project, 5)
    summary = project.run(WINDOW, WINDOW)
    assert_dead(summary, "clicks", 0, ROWS)
    assert summary["seen"] == expected(project)
    assert summary["restarts"]["data"] == 1
    assert (code.deaths()[1] == 0) == (number == signal.SIGKILL)


@pytest.mark.guarantee(
    "the kernel kills the reader of a payload (SIGKILL, twice at one place)",
    "red with topic, partition and offset (or file and line or row group, or segment), or a dead"
    " letter by policy; the rest is trained; read again: what is left of the chunk",
)
def test_two_sigkills_at_the_same_place_are_a_payload(tmp_path: Path) -> None:
    project = log_project(tmp_path)
    code = KillingCode(project, tmp_path / "code", signal.SIGKILL)
    poison = mark_segment(project, 0)
    summary = project.run(WINDOW, WINDOW)
    assert_dead(summary, "clicks", rows_in(poison), ROWS - rows_in(poison))
    assert summary["seen"] == without_segments(project, poison)
    assert code.deaths()[0] == 2
    assert "SIGKILL" in letters(project)[0]["reason"]


@pytest.mark.guarantee(
    "the reader of a payload computes for ever (a hang, twice at one place)",
    "red with topic, partition and offset (or file and line or row group, or segment), or a dead"
    " letter by policy; the rest is trained; read again: what is left of the chunk",
)
@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_payload_that_is_read_for_ever_is_a_dead_letter(tmp_path: Path) -> None:
    project = log_project(tmp_path, failover={"progress_deadlines": {"data": "30s"}})
    code = KillingCode(project, tmp_path / "code", number=0)
    poison = mark_segment(project, 0)
    summary = project.run(WINDOW, WINDOW, timeout_seconds=880)
    assert_dead(summary, "clicks", rows_in(poison), ROWS - rows_in(poison))
    assert summary["seen"] == without_segments(project, poison)
    assert code.deaths()[0] == 2
    assert "s of CPU time" in letters(project)[0]["reason"]


@pytest.mark.guarantee(
    "a payload kills its reader (SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE)",
    "red with topic, partition and offset (or file and line or row group, or segment), or a dead"
    " letter by policy; the rest is trained; read again: what is left of the chunk",
)
@pytest.mark.kafka
def test_messages_are_dead_letters_wherever_they_lie(
    kafka_bootstrap: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """First and last of one partition, and in the middle of the other."""
    topic = Topic(kafka_bootstrap, new_topic(2))
    project = ads_project(tmp_path, rows=ROWS)
    publish_marked(topic, 0, timedelta(minutes=1))
    publish_day(topic, FIRST_DAY, ROWS, seed=100, message_rows=20)
    publish_marked(topic, 0, timedelta(hours=23, minutes=59, seconds=30))
    middle = independent.kafka_ends(topic.bootstrap, topic.name)[1]
    publish_marked(topic, 1, timedelta(hours=23, minutes=59, seconds=30))
    publish_day(topic, FIRST_DAY + DAY, ROWS, seed=101)
    project.write_source("clicks", topic_source(topic, bad_rows="dead_letter"))
    KillingCode(project, tmp_path / "code")
    summary = project.run(WINDOW, WINDOW)
    assert seconds_to_find(project) < FOUND_SECONDS
    assert_dead(summary, "clicks", 3, ROWS)
    parts = []
    for record in independent.messages(topic.bootstrap, topic.name):
        rows = pa.ipc.open_stream(record.value).read_all()
        is_marked = MARKER in rows.column("user").to_pylist()
        if FIRST_MS <= record.timestamp < END_MS and not is_marked:
            parts.append(independent.message_row_ids(topic.name, record, rows.num_rows))
    assert summary["seen"]["clicks"] == independent.sums(parts)
    places = {(each["partition"], each["offset"]) for each in letters(project)}
    assert {(0, 0), (1, middle)} < places
    assert len(places) == 3
    assert {each["topic"] for each in letters(project)} == {topic.name}


@pytest.mark.guarantee(
    "the driver, the supervisor, the trainer or a data executor dies during the search for such"
    " a payload",
    "nothing; the search continues; read again: as if there were no such payload",
)
@pytest.mark.parametrize("role", ["driver", "supervisor", "data", "trainer"])
@pytest.mark.chaos
def test_a_kill_in_the_middle_of_the_search(tmp_path: Path, role: str) -> None:
    project = log_project(tmp_path)
    KillingCode(project, tmp_path / "code")
    poisons = [mark_segment(project, 3), mark_segment(project, 7), mark_segment(project, 9, 1)]
    target = tmp_path / "summary.json"
    with running(project, *RUN, "--summary", str(target)) as run:
        wait_for_search(project, run)
        kill_role(project, role)
        output, _ = run.communicate(timeout=120)
        assert run.returncode == 0, output
    summary = summary_of(target)
    dead = sum(map(rows_in, poisons))
    assert_dead(summary, "clicks", dead, ROWS - dead)
    assert summary["seen"] == without_segments(project, *poisons)
    assert {letter["file"] for letter in letters(project)} == {
        path.relative_to(project.log).as_posix() for path in poisons
    }
    assert no_process_left(project)


def wait_for_search(project: Project, run: subprocess.Popen[str]) -> None:
    """Until a task is suspected, and a data executor lives that will examine it."""
    deadline = time.monotonic() + 60
    while not list((project.home / "jobs").glob("*/suspicions/*.json")):
        assert run.poll() is None, run.communicate()[0]
        assert time.monotonic() < deadline, status(project)
        time.sleep(0.01)
