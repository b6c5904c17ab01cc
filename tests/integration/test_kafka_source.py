"""The kind `kafka` against what a real topic and a real broker do."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from support.projects import Topic
from support.there import there
from support.topic_changes import delete_before, delete_topic, recreate

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.common.values.row_ids import row_ids, splitmix64
from forebay.datatasks.sources.kafka.client import Cluster
from forebay.datatasks.sources.kafka.producer import (
    create_topic,
    ipc_message,
    publish,
    publish_batches,
)
from forebay.datatasks.sources.kafka.read import Access
from forebay.datatasks.sources.kafka.source import KafkaSource
from forebay.datatasks.tasks import Position
from forebay.embedded.kafka.broker import Broker
from forebay.errors import DataError, InfrastructureError
from forebay.home.paths import Home
from forebay.testing.source_suite import tasks_of

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("closed_sockets")]
START = datetime(2013, 6, 1, tzinfo=UTC)
DAYS = [Interval(START + timedelta(days=n), START + timedelta(days=n + 1)) for n in range(3)]
GROUP = "forebay.test"


class Clicks(NamedTuple):
    """A topic, and the sources that read it."""

    bootstrap: str
    name: str
    opened: ExitStack

    @property
    def topic(self) -> Topic:
        return Topic(self.bootstrap, self.name)

    def send(self, *batches: tuple[pa.Table, datetime, int]) -> None:
        publish_batches(self.bootstrap, self.name, batches)

    def publish(self, *values: bytes | None, **more: Any) -> None:
        """Messages of START, in partition 0."""
        publish(self.bootstrap, self.name, [(value, START, 0) for value in values], **more)

    def source(self, **more: Any) -> KafkaSource:
        options = {"bootstrap": self.bootstrap, "topic": self.name, **more.pop("options", {})}
        fields = {"name": "clicks", "kind": "kafka", "options": options, "columns": {"id": "int"}}
        source = open_source(SourceSpec.model_validate(fields | more), Path())
        assert isinstance(source, KafkaSource)
        self.opened.callback(source.close)
        return source


NewClicks = Callable[..., Clicks]


@pytest.fixture
def new(kafka_bootstrap: str, new_topic: Callable[..., str]) -> Iterator[NewClicks]:
    """Creates a topic: new(partitions, **settings)."""
    with ExitStack() as opened:
        yield lambda *given, **settings: Clicks(
            kafka_bootstrap, new_topic(*given, **settings), opened
        )


def batch_of(first: int, last: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, last), pa.int64())})


def ids(source: Source, task: Any, position: Position | None = None) -> list[int]:
    chunks = source.open(task, position, ["id"], 100)
    return [value for chunk in chunks for value in chunk.batch.column(0).to_pylist()]


def test_windows_are_cut_by_record_timestamps(new: NewClicks) -> None:
    clicks = new(2)
    clicks.send(*((batch_of(10 * n, 10 * n + 10), START + n * HOUR, n % 2) for n in range(60)))
    source = clicks.source()
    scan = source.scan(DAYS)
    assert scan.tasks["partition"].to_pylist() == ["0", "1"] * 3
    assert scan.tasks["hour"].to_pylist() == [0, 1] * 3
    assert scan.tasks["rows"].null_count == 6
    read = [sorted(v for t in tasks_of(scan, DAYS, n) for v in ids(source, t)) for n in range(3)]
    assert read == [list(range(240)), list(range(240, 480)), list(range(480, 600))]
    (task, _) = tasks_of(scan, DAYS, 1)
    hours = np.concatenate([chunk.hours for chunk in source.open(task, None, ["id"], 7)])
    assert hours.tolist() == [hour for hour in range(0, 24, 2) for _ in range(10)]
    lookups, looks, ends = 2 * 4, 2 * 4, 3  # records lie hours apart: each border is looked at
    assert scan.storage_calls <= lookups + looks + ends, "whatever the rows"


def test_row_ids_follow_the_definition(new: NewClicks) -> None:
    clicks = new()
    clicks.send((batch_of(0, 3), START, 0), (batch_of(3, 5), START, 0))
    source = clicks.source()
    (task,) = tasks_of(source.scan(DAYS), DAYS, 0)
    found = [int(each) for chunk in source.open(task, None, ["id"], 2) for each in chunk.row_ids]
    messages = row_ids(f"{clicks.name}/0", np.array([0, 0, 0, 1, 1])).view(np.uint64)
    wanted = splitmix64(messages + np.array([0, 1, 2, 0, 1], np.uint64)).view(np.int64)
    assert found == wanted.tolist()


def test_planning_counts_offsets(new: NewClicks) -> None:
    clicks = new()
    sent = [(b'{"id": %d}' % n, START + n * HOUR, 0) for n in range(30)]
    publish(clicks.bootstrap, clicks.name, sent)
    scan = clicks.source(options={"format": "json"}).scan(DAYS)
    assert scan.tasks["rows"].to_pylist() == [None, None], "only reading can tell"
    assert scan.offsets == [{"0": (0, 24)}, {"0": (24, 30)}, {"0": (30, 30)}]


def test_a_topic_made_anew_while_it_is_read_is_red(new: NewClicks) -> None:
    clicks = new()
    sent = [(batch_of(n, n + 1), START, 0) for n in range(600)]  # more than are decoded at once
    clicks.send(*sent)
    source = clicks.source()
    scan = source.scan(DAYS)
    (task,) = tasks_of(scan, DAYS, 0)
    reading = source.open(task, None, ["id"], 10)
    next(reading)
    before, after = recreate(clicks.topic)
    clicks.send(*sent)
    again = clicks.source().scan(DAYS).fingerprints
    assert all(a != b for a, b in zip(scan.fingerprints, again, strict=True))
    with pytest.raises(DataError, match=f"{before}, but .* {after}: it was deleted"):
        list(reading)
    with Cluster(clicks.bootstrap) as cluster:
        delete_topic(cluster, clicks.name)
    with pytest.raises(DataError, match="has been deleted: create and fill it"):
        ids(source, task)


def test_poison_stops_the_job_or_becomes_a_dead_letter(new: NewClicks) -> None:
    clicks, good = new(), ipc_message(batch_of(0, 5))
    clicks.publish(good, b"poison", good, None, ipc_message(pa.table({"other": [1]})), good)
    strict = clicks.source()
    (task,) = tasks_of(strict.scan(DAYS), DAYS, 0)
    with pytest.raises(DataError, match=f"topic {clicks.name}, partition 0, offset 1"):
        ids(strict, task)
    lenient = clicks.source(bad_rows="dead_letter")
    chunks = list(lenient.open(task, None, ["id"], 4))
    assert [v for c in chunks for v in c.batch.column(0).to_pylist()] == list(range(5)) * 3
    dead = [row for chunk in chunks for row in chunk.dead]
    assert [row.location["offset"] for row in dead] == [1, 3, 4]
    assert dead[0].row == '"poison"'
    assert all(row.reason for row in dead)
    for chunk in chunks:
        again = [row.position for c in lenient.open(task, chunk.end, ["id"], 4) for row in c.dead]
        assert again == [row.position for row in dead if row.position >= chunk.end]


@pytest.mark.parametrize("form", ["arrow-ipc", "json"])
def test_a_compressed_bomb_costs_no_other_message(new: NewClicks, form: str) -> None:
    clicks = new()
    good = ipc_message(batch_of(0, 3)) if form == "arrow-ipc" else b'{"id": 1}'
    for value in (good, bytes(30 << 20), good):  # each in a record batch of its own
        clicks.publish(value, compression="gzip")
    options = {"format": form, "message_bytes_max": 1 << 20}
    lenient = clicks.source(bad_rows="dead_letter", options=options)
    [task] = tasks_of(lenient.scan(DAYS), DAYS, 0)
    chunks = list(lenient.open(task, None, ["id"], 100))
    assert sum(chunk.batch.num_rows for chunk in chunks) == (6 if form == "arrow-ipc" else 2)
    [dead] = [row for chunk in chunks for row in chunk.dead]
    assert {"topic": clicks.name, "partition": 0, "offset": 1}.items() <= dead.location.items()
    assert "and message_bytes_max is 1,048,576" in dead.reason
    assert dead.rows == 1
    told = f"topic {clicks.name}, partition 0, offset 1.*message_bytes_max"
    with pytest.raises(DataError, match=told):
        ids(clicks.source(options=options), task)


def test_committed_offsets_are_the_sealed_positions(new: NewClicks) -> None:
    clicks = new(2)
    clicks.send(*((batch_of(n, n + 2), START, n % 2) for n in range(20)))
    source = clicks.source()
    tasks = tasks_of(source.scan(DAYS), DAYS, 0)
    for task in tasks:
        ids(source, task)
    with Cluster(clicks.bootstrap) as cluster:
        found = there(cluster.topic(clicks.name))
        assert cluster.committed(GROUP, found) == {}, "reading commits nothing"
        progress = {t.task_id: (t, Position(4 + n, n)) for n, t in enumerate(tasks)}
        source.commit(GROUP, progress)
        source.commit(GROUP, progress)
        assert cluster.committed(GROUP, found) == {0: 4, 1: 5}


def test_lag_is_what_comes_after_the_sealed_positions(new: NewClicks) -> None:
    clicks = new(3)
    assert [each.count for each in clicks.source().lag(GROUP)] == [0, 0, 0]
    clicks.send(*((batch_of(n, n + 2), START + n * HOUR, n % 2) for n in range(20)))
    source, rows = clicks.source(), clicks.source(options={"format": "json"})
    assert (source.offset_unit, rows.offset_unit) == ("messages", "rows")
    never = source.lag(GROUP)
    assert [(each.partition, each.count) for each in never] == [("0", 10), ("1", 10), ("2", 0)]
    assert [each.oldest for each in never] == [START, START + HOUR, None]
    tasks = tasks_of(source.scan(DAYS), DAYS, 0)
    source.commit(GROUP, {t.task_id: (t, Position(4 + 6 * n, 0)) for n, t in enumerate(tasks)})
    lags = source.lag(GROUP)
    assert [each.count for each in lags] == [6, 0, 0]
    assert [each.oldest for each in lags] == [START + 8 * HOUR, None, None]
    delete_before(clicks.topic, 7)
    assert [each.count for each in source.lag(GROUP)] == [3, 0, 0]
    assert clicks.source(options={"topic": "no-such-topic"}).lag(GROUP) == []


def test_a_topic_that_does_not_exist(new: NewClicks) -> None:
    clicks = new()
    source = clicks.source(options={"topic": clicks.name[:-1]})
    (finding,) = source.findings()
    assert finding.path == ("options", "topic")
    assert f"did you mean {clicks.name!r}" in finding.message
    assert clicks.name in source.describe().empty_reason
    with pytest.raises(DataError, match="did you mean"):
        source.scan(DAYS)
    with Cluster(clicks.bootstrap) as cluster:
        assert clicks.name[:-1] not in cluster.topic_names(), "asking creates nothing"


@pytest.mark.guarantee(
    "a broker does not list the partitions of a topic (missing rights)",
    "red; the topic does not count as empty",
)
def test_a_topic_that_is_not_described_is_never_empty(new: NewClicks) -> None:
    """No partition comes with an error, be it the name, or what the user may see."""
    with pytest.raises(InfrastructureError, match=r"'no topic' failed: .*InvalidTopicError"):
        new().source()._cluster.topic("no topic")


def test_a_stamp_of_no_year_is_described(new: NewClicks) -> None:
    from kafka import KafkaProducer

    clicks, value = new(), ipc_message(batch_of(0, 1))
    with KafkaProducer(bootstrap_servers=clicks.bootstrap) as producer:
        in_microseconds = 1_770_000_000_000_000
        producer.send(clicks.name, value, timestamp_ms=in_microseconds).get(10)
    assert there(clicks.source().describe().newest).year == 9999


def test_findings_about_formats_and_types(new: NewClicks) -> None:
    clicks = new()
    assert clicks.source().findings() == []
    assert "no records" in clicks.source().describe().empty_reason
    clicks.send((pa.table({"id": ["text"]}), START, 0))
    (finding,) = clicks.source().findings()
    assert (finding.path, finding.code) == (("columns", "id"), "column-type")
    (finding,) = clicks.source(options={"format": "json"}).findings()
    assert finding.path == ("options", "format")
    clicks = new()
    clicks.publish(b"[1]", b'{"id": "text"}', b"[1]")
    found = clicks.source(options={"format": "json"}).findings()
    assert [(one.path, one.code) for one in found] == [
        (("options", "format"), "undecodable"),
        (("columns", "id"), "column-type"),
    ]


def test_deleted_records_are_never_silent(new: NewClicks) -> None:
    clicks = new()
    clicks.send(*((batch_of(n, n + 1), START + n * HOUR, 0) for n in range(60)))
    (before,) = tasks_of(clicks.source().scan(DAYS), DAYS, 0)
    delete_before(clicks.topic, 6)
    with pytest.raises(DataError, match="declare `starts: "):
        clicks.source().scan(DAYS)
    with pytest.raises(DataError, match="retention"):
        ids(clicks.source(), before)
    assert clicks.source().scan(DAYS[1:]).tasks.num_rows == 2
    since = START + 6 * HOUR
    clipped = [Interval(since, DAYS[0].end), *DAYS[1:]]
    assert clicks.source(starts=since).scan(clipped).tasks.num_rows == 3


def test_a_time_limit_says_what_cannot_have_been_deleted(new: NewClicks) -> None:
    clicks, now = new(1, retention_ms=str(3_600_000)), datetime.now(UTC)
    clicks.send((batch_of(0, 1), now, 0))
    delete_before(clicks.topic, 1)
    recent = Interval(now - timedelta(minutes=50), now)
    assert clicks.source().scan([recent]).tasks.num_rows == 0
    with pytest.raises(DataError, match="were deleted"):
        clicks.source().scan([Interval(now - 3 * HOUR, now)])


def test_a_broker_that_is_down_is_named_in_bounded_time(
    new: NewClicks, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = new().source(options={"bootstrap": "127.0.0.1:9"})
    monkeypatch.setattr("forebay.datatasks.sources.kafka.client.CONNECT_SECONDS", 1.0)
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match=r"127\.0\.0\.1:9"):
        source.findings()
    assert time.monotonic() - started < 5


def test_a_restart_of_the_broker_does_not_stop_a_reader(tmp_path: Path) -> None:
    """A broker of its own. A second stop, for good, ends the reader with its address."""
    broker = Broker(Home(tmp_path), {**os.environ, "KAFKA_BOOTSTRAP": ""})
    with ExitStack() as opened:
        opened.callback(broker.stop)
        bootstrap = broker.start().bootstrap
        create_topic(bootstrap, "clicks", 1)
        clicks = Clicks(bootstrap, "clicks", opened)
        wide = pa.table({"id": range(200), "text": ["x" * 1000] * 200})
        clicks.send(*[(wide, START, 0)] * 200)
        source = clicks.source(columns={"id": "int", "text": "string"})
        source.access = Access(bootstrap, {}, 20.0)
        (task,) = tasks_of(source.scan(DAYS), DAYS, 0)
        (planned,) = task.ranges
        further = planned.model_copy(update={"end": 201})
        reading = source.open(task, None, ["id", "text"], 1000)
        rows = len(next(reading).rows)
        restart = threading.Thread(target=lambda: (broker.stop(), broker.start()))
        restart.start()
        for chunk in reading:
            rows += len(chunk.rows)
            time.sleep(0.02)
        restart.join()
        assert rows == 40_000
        clicks.send((wide, START, 0))
        with pytest.raises(DataError, match=r"200 to 201 .* leader epoch was \d+, .* in epoch \d+"):
            ids(source, task.model_copy(update={"ranges": (further,)}))
        source.commit(GROUP, {task.task_id: (task, Position(200, 0))})
        source.access = Access(bootstrap, {}, 2.0)
        reading = source.open(task, None, ["id"], 1000)
        next(reading)
        broker.stop()
        with pytest.raises(InfrastructureError, match=bootstrap):
            list(reading)


@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        (datetime(1970, 1, 16, tzinfo=UTC), "read as milliseconds; as seconds it would be 2011-01"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), "0 or -1 in place of a time"),
    ],
)
def test_records_whose_own_times_are_wrong_are_not_waited_for(
    new: NewClicks, stamp: datetime, words: str
) -> None:
    """They were in no window, ever, and nothing said so."""
    clicks = new(2, retention_ms="-1")
    clicks.send(*[(batch_of(0, 3), stamp, 1)] * 2)
    source = clicks.source(starts=START)
    assert source.describe().empty_reason == ""
    (found,) = source.findings()
    assert (found.path, found.code) == (("options", "topic"), "row-times")
    assert words in found.message
    with pytest.raises(DataError, match="partition 1: its rows' own times are wrong") as caught:
        source.scan(DAYS)
    assert words in str(caught.value)
    nothing, some = source.lag(GROUP)
    assert (nothing.count, some.count) == (0, 2)
    assert some.oldest == stamp
    clicks.send((batch_of(3, 5), START + HOUR, 1))
    assert source.findings() == []
    assert source.scan(DAYS).tasks.num_rows == 1
