"""`forebay run` over a real topic: each planned offset is a record, or the reason is known.

Offsets without a record are control records, records of aborted transactions, and what compaction
has removed. Any other one is a lost record, and red.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import independent
from support.kills import kill_role, no_process_left, running, summary_of, wait_for_rows
from support.projects import Project, Topic
from support.there import there
from support.topic_changes import (
    COMPACTED,
    compact,
    configure,
    delete_before,
    grow,
    recreate,
    transactions,
)

from forebay.datatasks.sources.kafka.producer import ipc_message, publish
from forebay.executors.job.handle import JobHandle
from forebay.home.paths import Home

pytestmark = pytest.mark.kafka
DAY = timedelta(days=1)
START = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = ("2026-03-01", "2026-03-02", "2026-03-03")
COLUMNS = {"id": "int", "kept": "int"}


def clicks_project(root: Path, topic: Topic, form: str) -> Project:
    project = Project(root, topic=topic)
    options = {"bootstrap": topic.bootstrap, "topic": topic.name, "format": form}
    project.write_source("clicks", {"kind": "kafka", "options": options, "columns": COLUMNS})
    project.pipeline = {
        "dataset": {
            "window": "1d",
            "start": DAYS[0],
            "event_id": ["id"],
            "label": {"column": "kept"},
            "streams": {"clicks": {"sources": ["clicks"]}},
            "features": {"id": {"encode": "hash", "buckets": 16}},
        },
        "model": {"kind": "count"},
        "train": {"paradigm": "stream", "minibatch_rows": 256},
        "job": {"checkpoint": {"every_steps": 5}},
    }
    project.write_pipeline()
    return project


@pytest.fixture
def topic(kafka_bootstrap: str, new_topic: Callable[..., str]) -> Topic:
    return Topic(kafka_bootstrap, new_topic(1))


@pytest.fixture
def project(topic: Topic, tmp_path: Path) -> Project:
    return clicks_project(tmp_path, topic, "json")


@pytest.fixture
def arrow(topic: Topic, tmp_path: Path) -> Project:
    return clicks_project(tmp_path, topic, "arrow-ipc")


def at(day: int, number: int = 0) -> datetime:
    return START + day * DAY + timedelta(minutes=1 + number)


def ms(day: int, number: int = 0) -> int:
    return int(at(day, number).timestamp() * 1000)


def row(number: int) -> bytes:
    return json.dumps({"id": number, "kept": number % 2}).encode()


def batch(first: int, rows: int = 10) -> bytes:
    ids = list(range(first, first + rows))
    return ipc_message(pa.table({"id": ids, "kept": [each % 2 for each in ids]}))


def clicks(window: dict[str, Any]) -> dict[str, Any]:
    return dict(window["sources"]["clicks"])


def counted(window: dict[str, Any]) -> list[int]:
    found, kinds = clicks(window), ("records", "control", "aborted", "compacted")
    return [found["planned_offsets"], *(found["read_offsets"][kind] for kind in kinds)]


def red(project: Project, *windows: str) -> str:
    ends = ("--from", windows[0], "--to", windows[-1])
    done = project.forebay("run", "ads", *ends, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert no_process_left(project)
    return done.stderr


@pytest.mark.usefixtures("jobs_here")
def test_producers_with_and_without_transactions_in_one_topic(
    project: Project, topic: Topic
) -> None:
    with transactions(topic) as writer:
        writer.write([(row(number), ms(0, number)) for number in range(4)])
        publish(topic.bootstrap, topic.name, [(row(4 + n), at(0, 4 + n), 0) for n in range(2)])
        writer.write([(row(90 + n), ms(0, 6)) for n in range(3)], abort=True)
        writer.write([(row(number), ms(0, number)) for number in (6, 7)])
        publish(topic.bootstrap, topic.name, [(row(8), at(0, 8), 0), (row(9), at(1), 0)])
    summary = project.run(DAYS[0], DAYS[1])
    assert [clicks(each)["trained_rows"] for each in summary["windows"]] == [9, 1]
    assert [counted(each) for each in summary["windows"]] == [[15, 9, 3, 3, 0], [1, 1, 0, 0, 0]]
    assert [clicks(each)["planned_rows"] for each in summary["windows"]] == [None, None]
    assert summary["rows_agree"] is True


@pytest.fixture
def compacted(topic: Topic) -> Topic:
    """Eleven records of the first day: the first one, and the last of each of two keys are left."""
    from kafka import KafkaProducer

    configure(topic, COMPACTED)
    with KafkaProducer(bootstrap_servers=topic.bootstrap) as producer:
        for number in range(11):
            key = b"only" if number == 0 else b"even" if number % 2 == 0 else b"odd"
            stamp = ms(0, number)
            producer.send(topic.name, row(number), key=key, timestamp_ms=stamp).get(10)
        for number in range(11, 13):  # a later segment, which the cleaner leaves alone
            stamp = ms(1, 30 * number)
            producer.send(topic.name, row(number), key=b"new", timestamp_ms=stamp).get(10)
    compact(topic, left=5)
    return topic


@pytest.mark.chaos
@pytest.mark.usefixtures("compacted")
def test_what_compaction_removed_is_counted(project: Project) -> None:
    summary = project.run(DAYS[0], DAYS[1])
    assert [counted(each) for each in summary["windows"]] == [[11, 3, 0, 0, 8], [2, 2, 0, 0, 0]]
    assert [clicks(each)["trained_rows"] for each in summary["windows"]] == [3, 2]


@pytest.mark.guarantee(
    "records in the middle of a topic are missing",
    "red with the offsets, unless `cleanup.policy` compacts; then they are counted",
)
@pytest.mark.chaos
def test_the_same_hole_where_nothing_compacts_is_red(project: Project, compacted: Topic) -> None:
    configure(compacted, COMPACTED | {"cleanup.policy": "delete"})
    told = red(project, DAYS[0])
    assert f"topic {compacted.name}, partition 0" in told
    assert "offsets 1 to 8" in told
    assert "cleanup.policy" in told


@pytest.mark.guarantee(
    "records of a topic are deleted or truncated between plan and read",
    "red with topic, partition and offsets",
)
def test_deleted_records_of_a_plan_are_red(arrow: Project, topic: Topic) -> None:
    publish(topic.bootstrap, topic.name, [(batch(10 * n), at(0, n), 0) for n in range(6)])
    publish(topic.bootstrap, topic.name, [(batch(60), at(1), 0)])
    arrow.forebay("plan", "ads", "--from", DAYS[0], "--to", DAYS[1])
    delete_before(topic, 3)
    told = red(arrow, DAYS[0], DAYS[1])
    assert f"topic {topic.name}, partition 0" in told
    assert "deleted" in told


@pytest.mark.guarantee(
    "a topic is deleted, and another of its name created, between plan and read",
    "red with both ids; running the window again plans it from the new topic",
)
def test_a_topic_made_anew_between_plan_and_read_is_red(arrow: Project, topic: Topic) -> None:
    publish(topic.bootstrap, topic.name, [(batch(10 * n), at(0, n), 0) for n in range(6)])
    publish(topic.bootstrap, topic.name, [(batch(60), at(1), 0)])
    arrow.forebay("plan", "ads", "--from", DAYS[0], "--to", DAYS[0])
    ids = recreate(topic)
    publish(topic.bootstrap, topic.name, [(batch(500 + n), at(0, n), 0) for n in range(20)])
    # As Airflow submits the job of a window that is planned already.
    claim = ("--claim", "run#0", "--previous", "none")
    result = json.loads(arrow.forebay("stage", "submit", "ads", DAYS[0], *claim).stdout)
    status = JobHandle(Home(arrow.home), result["job_id"], result["epoch"]).wait(60)
    assert no_process_left(arrow)
    assert status.state == "failed"
    message = there(status.error).message
    assert [each for each in (f"topic {topic.name}", *ids) if each not in message] == []
    summary = arrow.run(DAYS[0], DAYS[0])
    assert clicks(summary["windows"][0])["trained_rows"] == 200, "its way out is one"


@pytest.mark.usefixtures("jobs_here")
def test_a_partition_that_is_new_begins_at_its_beginning(arrow: Project, topic: Topic) -> None:
    publish(topic.bootstrap, topic.name, [(batch(0), at(0), 0), (batch(10), at(1), 0)])
    assert counted(arrow.run(DAYS[0], DAYS[0])["windows"][0]) == [1, 1, 0, 0, 0]
    grow(topic, 3)
    late = [(batch(20), at(0, 5), 1), (batch(30), at(1), 1), (batch(40), at(2), 1)]
    publish(topic.bootstrap, topic.name, late)
    summary = arrow.run(DAYS[1], DAYS[2])
    assert [counted(each)[0] for each in summary["windows"]] == [3, 1]
    assert [clicks(each)["late_rows"] for each in summary["windows"]] == [10, 0]
    assert clicks(summary["windows"][0])["offsets"] == {"0": [1, 2], "1": [0, 2], "2": [0, 0]}
    every = independent.kafka_sums(topic.bootstrap, topic.name, ms(0), ms(3))
    assert summary["seen"]["clicks"] == every


@pytest.mark.guarantee(
    "a data executor dies in a topic with transactions",
    "nothing; each offset is counted once; read again: frames in flight",
)
def test_a_killed_data_executor_counts_no_offset_twice(arrow: Project, topic: Topic) -> None:
    """Kept and aborted transactions and plain messages in turn, of 50 rows each."""
    rows = 50
    with transactions(topic) as writer:
        for number in range(300):
            value, stamp = batch(rows * number, rows), ms(0, number)
            writer.write([(value, stamp), (value, stamp)], abort=number % 3 == 2)
            if number % 10 == 0:
                publish(topic.bootstrap, topic.name, [(value, at(0, number), 0)])
    publish(topic.bootstrap, topic.name, [(batch(0), at(1), 0)])
    summary = arrow.root / "summary.json"
    arguments = ("run", "ads", "--from", DAYS[0], "--to", DAYS[0], "--summary", str(summary))
    with running(arrow, *arguments) as run:
        wait_for_rows(arrow, DAYS[0], 6_000, run)
        kill_role(arrow, "data")
        output, _ = run.communicate(timeout=120)
        assert run.returncode == 0, output
    found = summary_of(summary)
    assert found["restarts"]["data"] == 1
    assert counted(found["windows"][0]) == [930, 430, 300, 200, 0]
    assert clicks(found["windows"][0])["trained_rows"] == 430 * rows
