"""Windows of a real topic between plans: late, early and transactional records, new partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from support import topic_changes
from support.projects import Topic
from support.topic_changes import Transactions, delete_before, grow, recreate
from support.toy_roles.jobs import eventually

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.planning.border_rows import DecidedBorders
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.deleted_rows import RowsDeletedError
from forebay.datatasks.sources.kafka.producer import ipc_message, publish_batches
from forebay.errors import DataError
from forebay.home.database.open import close_databases, database_of
from forebay.home.paths import Home
from forebay.testing.source_suite import tasks_of

pytestmark = pytest.mark.kafka
NewTopic = Callable[..., str]
START = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def hour(number: int) -> Interval:
    return Interval(START + number * HOUR, START + (number + 1) * HOUR)


class Planner:
    """Plans windows of one topic as a pipeline does, and reads what it planned."""

    def __init__(self, bootstrap: str, topic: str, home: Home) -> None:
        self.topic, self._home = Topic(bootstrap, topic), home
        self.sent = 0

    def send(self, *stamps: datetime, partition: int = 0) -> None:
        """One record for each time."""
        batches = []
        for stamp in stamps:
            batches.append((pa.table({"id": [self.sent]}), stamp, partition))
            self.sent += 1
        publish_batches(self.topic.bootstrap, self.topic.name, batches)

    def ids(self, *hours: int, starts: datetime | None = None) -> list[list[int]]:
        """The records of each hour, planned by one scan."""
        return self.rows_of([hour(number) for number in hours], starts)

    def rows_of(self, spans: list[Interval], starts: datetime | None = None) -> list[list[int]]:
        """The same for any spans."""
        options = {"bootstrap": self.topic.bootstrap, "topic": self.topic.name}
        fields = {"name": "clicks", "kind": "kafka", "options": options, "starts": starts}
        spec = SourceSpec.model_validate({**fields, "columns": {"id": "int"}})
        borders = DecidedBorders(database_of(self._home), "ads", "clicks")
        with closing(open_source(spec, Path(), borders)) as source:
            scan = source.scan(spans)
            self.calls = scan.storage_calls
            return [
                sorted(
                    value
                    for task in tasks_of(scan, spans, index)
                    for chunk in source.open(task, None, ["id"], 100)
                    for value in chunk.batch.column(0).to_pylist()
                )
                for index in range(len(spans))
            ]


@pytest.fixture
def planner(kafka_bootstrap: str, new_topic: NewTopic, tmp_path: Path) -> Iterator[Planner]:
    yield Planner(kafka_bootstrap, new_topic(1), Home(tmp_path / "home"))
    close_databases()


def minutes(first: int, count: int = 4) -> Sequence[datetime]:
    """Times within one hour."""
    return [START + first * HOUR + 10 * MINUTE * number for number in range(count)]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 0, 1)])
def test_any_order_of_planning_gives_each_record_once(
    planner: Planner, order: tuple[int, ...]
) -> None:
    found: list[int] = []
    for count, number in enumerate(order):
        for each in range(4):  # of all hours so far, and late ones among them
            planner.send(*minutes(each, count + 1))
        found += planner.ids(number)[0]
    found += planner.ids(4)[0]
    assert sorted(found) == list(range(planner.sent))
    again = [value for part in planner.ids(0, 1, 2, 3, 4) for value in part]
    assert sorted(again) == sorted(found), "planned anew, they are the same"


@pytest.mark.guarantee(
    "a producer's clock stamps records hours ahead",
    "nothing; they move no window and are counted (`odd_timestamps`)",
)
def test_records_of_the_future_move_no_window(planner: Planner) -> None:
    ahead = (START + 5 * HOUR, START + 6 * HOUR)
    planner.send(*minutes(0, 2), *ahead, *minutes(0, 2), *minutes(1), *minutes(2))
    assert planner.ids(0, 1, 2, 3) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9], [10, 11, 12, 13], []]
    planner.send(*minutes(5))
    assert planner.ids(3, 4, 5) == [[], [], [14, 15, 16, 17]]


JITTERED = [START + timedelta(seconds=0.7), START - timedelta(seconds=0.4)]
AHEAD = START + 5.6 * HOUR


@pytest.mark.parametrize(
    ("stamps", "hours", "wanted"),
    [
        (
            [*minutes(0), *[START + 5 * HOUR] * 3, *minutes(1, 3)],
            (0, 1, 2, 5),
            [[0, 1, 2, 3], [*range(4, 10)], [], []],
        ),
        ([*minutes(0), *minutes(9)], range(10), [[0, 1, 2, 3], *[[]] * 8, [4, 5, 6, 7]]),
        (
            [*minutes(0), *minutes(1), START - 2 * HOUR, *minutes(2)],
            (0, 1, 2),
            [[0, 1, 2, 3], [4, 5, 6, 7, 8], [9, 10, 11, 12]],
        ),
        ([*JITTERED, *minutes(0), *minutes(1)], (0, 1), [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9]]),
        (
            [*minutes(3, 6), *minutes(4, 2), AHEAD, *minutes(4, 4)[2:], *minutes(5)],
            (3, 4, 5),
            [[*range(6)], [6, 7, 8, 9, 10], [11, 12, 13, 14]],
        ),
    ],
    ids=[
        "as many records behind an odd run are enough",
        "silence is no jump",
        "one late record moves no border",
        "jitter at the first border loses nothing",
        "one and a half hours ahead moves no window",
    ],
)
def test_windows_that_are_planned_at_once(
    planner: Planner, stamps: list[datetime], hours: Sequence[int], wanted: list[list[int]]
) -> None:
    planner.send(*stamps)
    assert planner.ids(*hours) == wanted


def test_at_the_end_of_a_partition_the_clock_tells(planner: Planner) -> None:
    planner.send(*minutes(0), datetime.now(UTC) + 3 * HOUR)
    assert planner.ids(0, 1) == [[0, 1, 2, 3, 4], []]
    planner.send(*minutes(1))
    assert planner.ids(1, 2) == [[], [5, 6, 7, 8]], "hour 1 was planned, and it is what it was"


@pytest.mark.parametrize("count", [2, 120, 1000])
def test_what_is_ahead_of_the_clock_moves_no_window(planner: Planner, count: int) -> None:
    """However few records follow: else no window before that time would have them."""
    planner.send(*minutes(0), *[datetime.now(UTC) + 3000 * HOUR] * count, *minutes(1, 1))
    assert planner.ids(0) == [[0, 1, 2, 3]]
    planner.send(*minutes(1), *minutes(2))
    first = 4 + count
    assert planner.ids(1, 2, 3) == [[*range(4, first + 5)], [*range(first + 5, first + 9)], []]


def test_a_run_of_more_records_is_no_mistake(planner: Planner) -> None:
    ahead = [START + 5 * HOUR + MINUTE * (number % 50) for number in range(120)]
    planner.send(*minutes(0), *ahead, *minutes(1))
    assert planner.ids(0) == [[0, 1, 2, 3]]
    assert planner.ids(1, 2) == [[], []]
    assert planner.ids(5) == [list(range(4, 128))]


@contextmanager
def transactions(planner: Planner) -> Iterator[Transactions]:
    """In the end all that were committed can be read."""
    from kafka import KafkaConsumer, TopicPartition

    with topic_changes.transactions(planner.topic) as writer:
        yield writer
    # A commit is answered before its markers stand in the partitions.
    readers = [
        KafkaConsumer(bootstrap_servers=planner.topic.bootstrap, isolation_level=level)
        for level in ("read_committed", "read_uncommitted")
    ]
    partition = TopicPartition(planner.topic.name, 0)
    eventually(lambda: len({reader.end_offsets([partition])[partition] for reader in readers}) == 1)
    for reader in readers:
        reader.close()


def record(number: int, stamp: datetime) -> tuple[bytes, int]:
    return ipc_message(pa.table({"id": [number]})), int(stamp.timestamp() * 1000)


def test_an_open_transaction_belongs_to_a_later_window(planner: Planner) -> None:
    planner.send(*minutes(0))
    with transactions(planner) as writer:
        producer, (value, stamp_ms) = writer._producer, record(4, START + 50 * MINUTE)
        producer.begin_transaction()
        producer.send(planner.topic.name, value, partition=0, timestamp_ms=stamp_ms)
        producer.flush()
        assert planner.ids(0) == [[0, 1, 2, 3]], "nobody waits for it"
        producer.commit_transaction()
    assert planner.ids(1) == [[4]]


def test_a_topic_made_anew_has_borders_of_its_own(planner: Planner) -> None:
    planner.send(*minutes(0), *minutes(1))
    assert planner.ids(0, 1) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    recreate(planner.topic)
    planner.send(*minutes(0, 2), *minutes(1))
    assert planner.ids(0, 1) == [[8, 9], [10, 11, 12, 13]]


@pytest.mark.guarantee(
    "a topic is deleted, and another of its name created, between two plans",
    "red, until `starts` says from when on to read the new one",
)
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_topic_made_anew_between_plans_is_never_silent(planner: Planner, partitions: int) -> None:
    """It has one partition then, and had as many or more."""
    planner.send(*minutes(0), *minutes(1, 2))
    if partitions > 1:
        grow(planner.topic, partitions)
    assert planner.ids(0) == [[0, 1, 2, 3]]
    recreate(planner.topic)
    planner.send(*minutes(1)[2:], *minutes(2))
    told = r"2026-03-01T01:00Z were planned from a different one .* `starts: 2026-03-01T01:00Z`"
    for _ in range(2):
        with pytest.raises(RowsDeletedError, match=told) as caught:
            planner.ids(1, 2)
    assert list(caught.value.reasons) == [hour(1), hour(2)]
    assert planner.ids(1, 2, starts=START + HOUR) == [[6, 7], [8, 9, 10, 11]]
    assert planner.ids(2) == [[8, 9, 10, 11]], "it is known by now"


@pytest.mark.guarantee(
    "retention deletes the beginning of a topic or a log",
    "red if a window has lost rows; later windows continue",
)
def test_deleted_rows_of_a_decided_window_are_never_silent(planner: Planner) -> None:
    planner.send(*minutes(0), *minutes(1), *minutes(2))
    assert planner.ids(0, 1)
    delete_before(planner.topic, 6)
    for number in (0, 1):
        with pytest.raises(RowsDeletedError, match="those before 6 were deleted"):
            planner.ids(number)
    with pytest.raises(RowsDeletedError, match="declares `starts: 2026-03-01T02:00Z`") as caught:
        planner.ids(0, 1, 2)
    assert list(caught.value.reasons) == [hour(0), hour(1)]
    assert planner.ids(2) == [[8, 9, 10, 11]], "its border is known: nothing of it can be gone"


def test_planned_from_the_middle_an_odd_record_moves_no_window(planner: Planner) -> None:
    planner.send(START, AHEAD)
    for number in range(1, 7):
        planner.send(*minutes(number, 6))
    assert planner.ids(5) == [[*range(26, 32)]]
    assert planner.ids(0, 1) == [[0], [*range(1, 8)]], "it goes with what follows it"


def test_stamps_of_no_year_are_only_odd(planner: Planner) -> None:
    in_microseconds = 1_770_000_000_000_000
    planner.send(*minutes(0, 2))
    value, _ = record(planner.sent, START)
    planner.sent += 1
    with transactions(planner) as writer:
        writer.write([(value, in_microseconds)])
    planner.send(*minutes(0, 4)[2:], *minutes(1))
    assert planner.ids(0, 1) == [[0, 1, 2, 3, 4], [5, 6, 7, 8]]


def test_a_refused_window_stays_refused(planner: Planner) -> None:
    planner.send(*minutes(0), *minutes(1))
    delete_before(planner.topic, 2)
    for _ in range(3):
        with pytest.raises(DataError, match="declare `starts: "):
            planner.ids(0)


def test_before_1970_there_is_nothing(planner: Planner) -> None:
    planner.send(*minutes(0))
    spans = [Interval(datetime(1970, 1, 1, tzinfo=UTC), START + HOUR)]
    assert planner.rows_of(spans) == [[0, 1, 2, 3]]


def test_a_border_costs_a_look_up_and_one_look(planner: Planner) -> None:
    planner.send(*minutes(0), *minutes(1), *minutes(2))
    planner.ids(0, 1)
    topic, ends, look_ups, looks = 1, 2, 3, 3
    assert planner.calls == topic + ends + look_ups + looks
    planner.send(*minutes(3))
    planner.ids(1)
    assert planner.calls == topic + ends + 2, "what is decided is not looked at"


@pytest.mark.guarantee(
    "a transaction is aborted after it wrote records of many windows",
    "nothing; they move no window",
)
def test_an_aborted_replay_moves_no_window(planner: Planner) -> None:
    """Three hours are written twice, as the first transaction is aborted in the end."""
    planner.send(*minutes(0))
    with transactions(planner) as writer:
        for first, abort in ((0, True), (100, False)):
            replay = [record(first + n, minutes(n // 4)[n % 4]) for n in range(4, 16)]
            writer.write(replay, abort=abort)
    found = planner.ids(0, 1, 2, 3)
    assert found == [[0, 1, 2, 3], [*range(104, 108)], [*range(108, 112)], [*range(112, 116)]]


def test_the_end_of_a_transaction_moves_no_window(planner: Planner) -> None:
    """Its control record is stamped by the broker, when the records are some minutes old."""
    now = datetime.now(UTC)
    with transactions(planner) as writer:
        for number, age in enumerate((20, 15, 10, 4)):
            writer.write([record(number, now - age * MINUTE)])
    between = now - 5 * MINUTE
    spans = [Interval(now - 30 * MINUTE, between), Interval(between, now)]
    assert planner.rows_of(spans) == [[0, 1, 2], [3]]


ODD_OVER_MIDNIGHT = [START + 24 * HOUR + number * 10 * MINUTE for number in range(-2, 3)]


@pytest.mark.parametrize("in_order", [True, False])
def test_an_odd_run_over_a_border_moves_no_window(planner: Planner, in_order: bool) -> None:
    """A clock that is fifteen hours ahead: its times are near to each other, as right ones are."""
    every = [START + 30 * MINUTE * number for number in range(96)]
    planner.send(*every[:18], *ODD_OVER_MIDNIGHT, *every[18:])
    days = [Interval(start, start + 24 * HOUR) for start in (START, START + 24 * HOUR)]
    wanted = [[*range(53)], [*range(53, 101)]]
    if in_order:
        assert planner.rows_of(days) == wanted
    else:
        assert planner.rows_of(days[1:]) == wanted[1:]
        assert planner.rows_of(days[:1]) == wanted[:1]


def test_a_new_partition_whose_first_records_are_deleted_is_never_silent(planner: Planner) -> None:
    planner.send(*minutes(0), *minutes(1))
    assert planner.ids(0) == [[0, 1, 2, 3]]
    grow(planner.topic, 2)
    planner.send(*minutes(1), partition=1)
    delete_before(planner.topic, 2, partition=1)
    assert planner.ids(0) == [[0, 1, 2, 3]], "planned anew, when the partition is there"
    with pytest.raises(RowsDeletedError, match=r"partition 1: .* those before 2 were deleted"):
        planner.ids(1)
