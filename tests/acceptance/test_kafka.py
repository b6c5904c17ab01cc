"""`forebay run` with its stream on a real Kafka broker: bad messages, missing topics, windows."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support import independent
from support.kill_cases import committed, expected, sealed_offsets
from support.kills import no_process_left
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    Topic,
    ads_project,
    history_source,
    publish_day,
    topic_source,
)
from support.truth_rows import serves

from forebay.datatasks.sources.kafka.producer import publish

pytestmark = pytest.mark.kafka
WINDOW = "2026-03-01"
ROWS = 2_000
POISON = b"no Arrow stream"
BOUND_SECONDS = 60.0


@pytest.fixture
def topic(kafka_bootstrap: str, new_topic: Callable[..., str]) -> Topic:
    return Topic(kafka_bootstrap, new_topic(2))


@pytest.fixture
def project(topic: Topic, tmp_path: Path) -> Project:
    return ads_project(tmp_path, rows=ROWS, topic=topic)


def failed(project: Project) -> Any:
    done = project.forebay("run", "ads", "--from", WINDOW, "--to", WINDOW, check=False)
    assert no_process_left(project)
    assert "Traceback" not in done.stderr
    return done


def test_why_says_how_far_behind_each_partition_is(project: Project, topic: Topic) -> None:
    ends = independent.kafka_ends(topic.bootstrap, topic.name)
    told = project.forebay("why", "ads", WINDOW).stdout
    for partition in (0, 1):
        count = f"{ends[partition]:,} messages after the sealed position, the oldest "
        assert f"clicks, partition {partition}: {count}" in told
    why = json.loads(project.forebay("why", "ads", WINDOW, "--output", "json").stdout)
    lags = [(each["partition"], each["count"]) for each in why["lags"]]
    assert lags == [("0", ends[0]), ("1", ends[1])]
    assert all(each["seconds"] > 0 for each in why["lags"])


@pytest.mark.guarantee(
    "a Kafka message does not decode",
    "red with topic, partition and offset, or dead letters by policy",
)
def test_a_poison_message_is_red_and_named(project: Project, topic: Topic) -> None:
    offset = independent.kafka_ends(topic.bootstrap, topic.name)[1]
    at = FIRST_DAY + timedelta(hours=23, minutes=59, seconds=30)
    publish(topic.bootstrap, topic.name, [(POISON, at, 1)])
    done = failed(project)
    assert done.returncode == 3, done.stderr
    assert f"topic {topic.name}, partition 1, offset {offset}" in done.stderr
    assert not serves(project.home, "ads")
    project.write_source("clicks", topic_source(topic, bad_rows="dead_letter"))
    summary = project.run(WINDOW, WINDOW)
    source = summary["windows"][0]["sources"]["clicks"]
    assert source["planned_rows"] is None  # how many rows a message holds, only reading can tell
    assert source["dead_letter_rows"] == 1
    assert source["trained_rows"] == ROWS
    assert source["served_rows"] == ROWS + 1
    assert summary["rows_agree"] is True
    (letter,) = json.loads(project.forebay("dead", "show", "ads", "--output", "json").stdout)
    place = (letter["source"], letter["topic"], letter["partition"], letter["offset"])
    assert place == ("clicks", topic.name, 1, offset)
    assert letter["reason"]
    assert letter["content"] == POISON.decode()
    assert topic.name in project.forebay("dead", "show", "ads").stdout
    assert committed(project)[1] == offset + 1, "a dead letter is dealt with"


def test_a_broker_that_hangs_is_red_in_bounded_time(tmp_path: Path) -> None:
    """It takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        mute = f"127.0.0.1:{server.getsockname()[1]}"
        project = ads_project(tmp_path, rows=10)
        project.write_source("clicks", topic_source(Topic(mute, "clicks")))
        started = time.monotonic()
        done = failed(project)
    assert time.monotonic() - started < BOUND_SECONDS
    assert done.returncode == 4, done.stderr
    assert mute in done.stderr


def test_committed_offsets_are_sealed_ones_window_by_window(project: Project, topic: Topic) -> None:
    """The next day lies in the topic already: the first window commits up to its own end only."""
    publish_day(topic, FIRST_DAY + DAY, ROWS, seed=9)
    project.write_source("history", history_source(ends="2026-03-01"))
    history = expected(project)["history"]
    windows = ["2026-03-01", "2026-03-02"]
    for day, window in enumerate(windows):
        end_ms = int((FIRST_DAY + (day + 1) * DAY).timestamp() * 1000)
        summary = project.run(window, window)
        ends = independent.kafka_ends(topic.bootstrap, topic.name, end_ms)
        assert sealed_offsets(project, window) == ends
        assert committed(project) == ends
        start_ms = int(FIRST_DAY.timestamp() * 1000)
        sums = independent.kafka_sums(topic.bootstrap, topic.name, start_ms, end_ms)
        assert summary["seen"] == {"clicks": sums, "history": history}
        assert sums["rows"] == (day + 1) * ROWS
    again = project.run(*windows)  # asks nobody
    assert (again["trained_windows"], again["reused_windows"]) == ([], windows)
    assert (again["storage_calls"], again["seen"]) == (0, summary["seen"])


# A stranger's own topic: JSON rows of every type, hourly windows over midnight ----------------

START = datetime(2025, 7, 1, 22, tzinfo=UTC)
HOURS = 4
JSON_COLUMNS = {
    "order": "string",
    "placed": "timestamp",
    "items": "int",
    "total": "float",
    "gift": "bool",
    "codes": "list<int>",
    "words": "list<string>",
    "nothing": "string",
    "kept": "string",
}


def orders(hour: int, rows: int) -> Iterator[tuple[bytes, datetime, int]]:
    """Rows whose event time lies an hour before their record's timestamp, which cuts them."""
    for row in range(rows):
        at = START + timedelta(hours=hour, seconds=3600 * row / rows)
        placed = at - timedelta(hours=1)
        value: dict[str, Any] = {
            "order": f"o-{hour}-{row}-é",
            "placed": placed.isoformat() if row % 2 else int(placed.timestamp() * 1000),
            "items": row % 9 - 4,
            "total": row / 7 if row % 5 else None,
            "gift": row % 3 == 0,
            "codes": list(range(row % 4)),
            "words": ["a", "日本"][: row % 3],
            "nothing": None,
            "kept": "yes" if row % 3 else "no",
            "undeclared": {"deep": [row]},
        }
        if row % 10 == 0:
            del value["words"]  # a missing key is a null
        yield json.dumps(value).encode(), at, row % 2


@pytest.mark.usefixtures("jobs_here")
def test_json_of_every_type_in_hourly_windows_by_record_timestamp(
    topic: Topic, tmp_path: Path
) -> None:
    for hour in range(HOURS):
        publish(topic.bootstrap, topic.name, orders(hour, 100 + 50 * hour))
    returns = Project(tmp_path, topic=topic)
    options = {"bootstrap": topic.bootstrap, "topic": topic.name, "format": "json"}
    returns.write_source("orders", {"kind": "kafka", "options": options, "columns": JSON_COLUMNS})
    bucketed = {"encode": "hash", "buckets": 16}
    returns.pipeline = {
        "dataset": {
            "window": "1h",
            "start": START.isoformat(),
            "event_id": ["order"],
            "label": {"column": "kept", "positive": "no"},
            "streams": {"orders": {"sources": ["orders"]}},
            "features": {
                "items": bucketed,
                "total": {"encode": "numeric"},
                "gift": bucketed,
                "codes": bucketed,
                "words": bucketed,
                "nothing": bucketed,
                "hour": {"column": "placed", "part": "hour", **bucketed},
            },
        },
        "model": {"kind": "count"},
        "train": {"paradigm": "stream"},
    }
    returns.write_pipeline()
    checked = returns.forebay("check", "--connect")
    assert "no problems" in checked.stdout, checked.stdout
    summary = returns.run("2025-07-01T22", "2025-07-02T01")
    windows = ["2025-07-01T22", "2025-07-01T23", "2025-07-02T00", "2025-07-02T01"]
    assert [window["window"] for window in summary["windows"]] == windows
    every = []
    for hour, window in enumerate(summary["windows"]):
        first_ms = int((START + timedelta(hours=hour)).timestamp() * 1000)
        sums = independent.kafka_sums(
            topic.bootstrap, topic.name, first_ms, first_ms + 3_600_000, one_row=True
        )
        assert sums["rows"] == 100 + 50 * hour
        source = window["sources"]["orders"]
        assert source["planned_offsets"] == source["trained_rows"] == sums["rows"]
        assert source["read_offsets"]["records"] == sums["rows"], "a message is a row"
        every.append(sums)
    assert summary["seen"]["orders"] == independent.added(*every)

    offset = independent.kafka_ends(topic.bootstrap, topic.name)[0]
    wrong = json.dumps({"order": "o", "items": "many", "kept": "no"}).encode()
    publish(topic.bootstrap, topic.name, [(wrong, START + timedelta(hours=HOURS), 0)])
    last = "2025-07-02T02"
    done = returns.forebay("run", "ads", "--from", last, "--to", last, check=False)
    assert done.returncode == 3, done.stderr
    assert f"topic {topic.name}, partition 0, offset {offset}" in done.stderr
    assert "'items' as int" in done.stderr
