"""Windows of a log between plans: late and early segments, trimming, partitions that appear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.planning.border_rows import DecidedBorders
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.plans.plan_rows import store_plan
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.common.contract.deleted_rows import RowsDeletedError
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.errors import DataError, FencedError
from forebay.home.database.open import close_databases, database_of
from forebay.home.paths import Home
from forebay.system.instants import to_us
from forebay.testing.source_suite import tasks_of

START = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def span(number: int) -> Interval:
    return Interval(START + number * HOUR, START + (number + 1) * HOUR)


class Planner:
    """Plans hours of one log as a pipeline does, and reads what it planned."""

    def __init__(self, root: Path) -> None:
        self.root, self.sent = root, 0
        self.options = {"path": "log"}
        self.offsets: Counter[int] = Counter()
        self.outside: list[int] = []
        self.records = True  # whether what it planned reaches the sink

    def send(self, *stamps: datetime, partition: int = 0) -> list[Path]:
        """A segment of one row for each time, with whatever clock its writer had."""
        folder = self.root / "log" / str(partition)
        folder.mkdir(parents=True, exist_ok=True)
        found = []
        for stamp in stamps:
            offset = self.offsets[partition]
            path = folder / f"{offset:020d}-00000001-{to_us(stamp) // 1000:015d}.arrow"
            table = pa.table({"n": [self.sent]})
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
            self.offsets[partition] += 1
            self.sent += 1
            found.append(path)
        return found

    def opened(self, starts: datetime | None = None) -> Source:
        fields = {"kind": "log", "options": self.options, "columns": {"n": "int"}}
        spec = SourceSpec.model_validate({"name": "clicks", "starts": starts, **fields})
        borders = DecidedBorders(database_of(Home(self.root / "home")), "ads", "clicks")
        return open_source(spec, self.root, borders)

    def ids(self, *hours: int, starts: datetime | None = None) -> list[list[int]]:
        return self.rows_of([span(number) for number in hours], starts)

    def rows_of(self, spans: list[Interval], starts: datetime | None = None) -> list[list[int]]:
        with closing(self.opened(starts)) as source:
            scan = source.scan(spans)
            tasks = [tasks_of(scan, spans, index) for index in range(len(spans))]
            chunks = [
                [chunk for task in part for chunk in source.open(task, None, ["n"], 100)]
                for part in tasks
            ]
        if self.records:
            self._record(spans[-1], scan.last_segments)
        self.outside = [
            int(value)
            for part in chunks
            for chunk in part
            if chunk.outside is not None
            for value in chunk.outside
        ]
        return [sorted(n for c in part for n in c.batch["n"].to_pylist()) for part in chunks]

    def refuses(self, told: str, hour: int, starts: datetime | None = None) -> None:
        with pytest.raises(DataError, match=told):
            self.ids(hour, starts=starts)

    def _record(self, planned: Interval, last_segments: dict[str, str]) -> None:
        """As the sink does, so that the next scan knows what was planned."""
        at = {"data_from": planned.start, "data_to": planned.end}
        figures = {"stream": "s", "feed": "stream", "tasks": 0, "files": 0, "rows": 0}
        clicks = {"source": "clicks", **figures, **at, "last_segments": last_segments}
        span = {"window": f"{planned.start:%H:%M}", "start": planned.start, "end": planned.end}
        more = {"generation": self.sent + len(self.options), "fingerprint": ""}
        plan = WindowPlan.model_validate({**span, **more, "sources": {"clicks": clicks}})
        with suppress(FencedError):  # it was planned so already
            database_of(Home(self.root / "home")).transact(
                lambda rows: store_plan(rows, "ads", "main", plan, {})
            )


def delete(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()


@pytest.fixture
def planner(tmp_path: Path) -> Iterator[Planner]:
    yield Planner(tmp_path)
    close_databases()


def minutes(hour: int, count: int = 4) -> list[datetime]:
    return [START + hour * HOUR + 10 * MINUTE * number for number in range(count)]


def test_a_late_segment_is_in_the_next_window(planner: Planner) -> None:
    planner.send(*minutes(0))
    assert planner.ids(0) == [[0, 1, 2, 3]]
    planner.send(START + 59 * MINUTE, *minutes(1))
    assert (planner.ids(1), planner.outside) == ([[4, 5, 6, 7, 8]], [-1, 0, 0, 0, 0])
    assert planner.ids(0) == [[0, 1, 2, 3]], "planned anew, it is the same"


def test_segments_of_the_future_move_no_window(planner: Planner) -> None:
    ahead = (START + 5 * HOUR, START + 6 * HOUR)
    planner.send(*minutes(0, 2), *ahead, *minutes(0, 2), *minutes(1), *minutes(2))
    assert planner.ids(0, 1, 2, 3) == [[*range(6)], [6, 7, 8, 9], [10, 11, 12, 13], []]
    planner.send(*minutes(5))
    assert planner.ids(3, 4, 5) == [[], [], [14, 15, 16, 17]]
    planner.ids(0)
    assert planner.outside == [0, 0, 1, 1, 0, 0]


def test_a_log_may_be_trimmed_where_nobody_needs_it(planner: Planner) -> None:
    written = planner.send(*minutes(0), *minutes(1), *minutes(2))
    assert planner.ids(0, 1)
    delete(written[:4])
    assert planner.ids(1, 2) == [[4, 5, 6, 7], [8, 9, 10, 11]]
    planner.refuses(r"offsets 0 to 4, and those before 4 were deleted", 0)
    written[4].unlink()
    planner.refuses(r"offsets 4 to 8, and those before 5 were deleted", 1)


@pytest.mark.guarantee(
    "a log is deleted, and another one with longer segments is written under its path",
    "red; declare it as a new source, under another name",
)
def test_a_log_that_was_made_anew_is_never_read_from_the_middle(planner: Planner) -> None:
    planner.records = False
    written = planner.send(*minutes(0), *minutes(1))
    assert planner.ids(0, 1)
    delete(written)
    table = pa.table({"n": range(20)})
    LogWriter(planner.root / "log", 0).append(table, START + 2 * HOUR + MINUTE)
    for number in (0, 1, 2):
        planner.refuses(r"offset \d, which is now inside the segment .* recreated", number)


@pytest.mark.guarantee(
    "all segments of a partition of a log are deleted",
    "red, with what to do: a line that begins later, or `starts`; a missing partition does not "
    "count as one without rows",
)
def test_a_partition_that_was_trimmed_away_is_never_silent(planner: Planner) -> None:
    written = planner.send(*minutes(0), *minutes(1))
    planner.send(*minutes(0), *minutes(1), *minutes(2), partition=1)
    assert planner.ids(0, 1)
    delete(written)
    for number, offsets in enumerate(("0 to 4", "4 to 8")):
        planner.refuses(
            rf"partition 0: .* offsets {offsets}, and those before 8 were deleted", number
        )
    assert planner.ids(2) == [[16, 17, 18, 19]]


@pytest.mark.guarantee(
    "all rows of a window before the first planned one are deleted",
    "red, even if `starts` is before that window",
)
def test_a_window_before_those_that_are_planned_may_have_lost_all_its_rows(
    planner: Planner,
) -> None:
    written = planner.send(*minutes(0), *minutes(1), *minutes(2))
    assert planner.ids(1) == [[4, 5, 6, 7]]
    delete(written[:8])
    for starts in (None, START):
        planner.refuses(r"before offset 8 were deleted, and .* may be among them", 0, starts=starts)
    assert planner.ids(2) == [[8, 9, 10, 11]]


def test_all_windows_that_lost_rows_are_named(planner: Planner) -> None:
    written = planner.send(*minutes(0), *minutes(1), *minutes(2))
    assert planner.ids(0, 1, 2)
    delete(written[:5])
    with pytest.raises(RowsDeletedError, match="declares `starts: 2026-03-01T02:00Z`") as caught:
        planner.ids(0, 1, 2)
    assert list(caught.value.reasons) == [span(0), span(1)]


def test_nobody_can_tell_what_was_trimmed_before_the_first_plan(planner: Planner) -> None:
    written = planner.send(*minutes(0), *minutes(1))
    written[0].unlink()
    told = r"before offset 1 were deleted, .* declare `starts: 2026-03-01T00:00Z`"
    for _ in range(3):  # it stays refused
        planner.refuses(told, 0)
    assert planner.ids(1) == [[4, 5, 6, 7]]


def test_a_new_partition_begins_at_its_beginning_in_each_stream(planner: Planner) -> None:
    """Streams read the hours, and hours that are half an hour older, whoever plans first."""

    def late(number: int) -> Interval:
        return span(number).shifted_back(30 * MINUTE)

    planner.send(*minutes(0), *minutes(1))
    assert (planner.ids(0), planner.rows_of([late(0)])) == ([[0, 1, 2, 3]], [[0, 1, 2]])
    assert planner.ids(1) == [[4, 5, 6, 7]]
    # Stamped in hours that the first stream has planned without the partition.
    planner.send(START + 40 * MINUTE, START + 70 * MINUTE, *minutes(2), partition=1)
    fresh, again = planner.ids(2), planner.rows_of([late(1), late(2), late(3)])
    assert fresh == [[8, 9, 10, 11, 12, 13]]
    assert sorted(n for rows in again for n in rows) == list(range(3, 14))


@pytest.mark.parametrize("is_first", [False, True])
def test_a_new_partition_that_the_older_stream_plans_first(
    planner: Planner, *, is_first: bool
) -> None:
    older = [span(number).shifted_back(30 * MINUTE) for number in range(5)]
    planner.send(*minutes(0), *minutes(1))
    read: dict[str, list[int]] = {"fresh": [], "older": []}
    read["fresh"] += [n for rows in planner.ids(0, 1) for n in rows]
    read["older"] += planner.rows_of(older[:1])[0]
    planner.send(START + 40 * MINUTE, START + 70 * MINUTE, *minutes(2), partition=1)
    planner.send(*minutes(2), *minutes(3))
    if is_first:
        read["older"] += planner.rows_of(older[1:2])[0]
    read["fresh"] += [n for rows in planner.ids(2, 3) for n in rows]
    read["older"] += [n for rows in planner.rows_of(older[2 if is_first else 1 :]) for n in rows]
    every = list(range(planner.sent))
    assert {name: sorted(rows) for name, rows in read.items()} == {"fresh": every, "older": every}


def test_one_late_segment_moves_no_border(planner: Planner) -> None:
    planner.send(*minutes(0), *minutes(1), START - 2 * HOUR, *minutes(2))
    assert planner.ids(0, 1, 2) == [[0, 1, 2, 3], [4, 5, 6, 7, 8], [9, 10, 11, 12]]


@pytest.mark.guarantee(
    "the last record of a young stream is late", "nothing; its first window has its rows"
)
def test_a_young_partition_whose_last_segment_is_late_keeps_its_first_window(
    planner: Planner,
) -> None:
    planner.send(*minutes(0), START - 2 * HOUR)
    assert planner.ids(0, 1) == [[0, 1, 2, 3, 4], []]


@pytest.mark.parametrize(
    "stamps",
    [[*minutes(0), START - 2 * HOUR], [START + 12 * HOUR, *minutes(0)]],
    ids=["late at the end", "odd at the border"],
)
def test_where_the_log_has_older_records_the_first_window_loses_none(
    planner: Planner, stamps: list[datetime]
) -> None:
    planner.send(START - 240 * HOUR, *stamps)
    assert planner.ids(0, 1) == [[1, 2, 3, 4, 5], []]


def test_what_nobody_had_seen_of_a_planned_window_is_in_the_next(planner: Planner) -> None:
    (planner.root / "log").mkdir()
    assert planner.ids(0) == [[]]
    planner.send(START + 54 * MINUTE, *minutes(1))
    assert planner.ids(1) == [[0, 1, 2, 3, 4]]


def test_a_partition_that_was_trimmed_away_and_goes_on(planner: Planner) -> None:
    written = planner.send(*minutes(0), *minutes(1))
    planner.send(*minutes(0), partition=1)
    assert planner.ids(0, 1)[0] == [0, 1, 2, 3, 8, 9, 10, 11]
    delete(written)
    assert planner.ids(2) == [[]]
    planner.send(START + 2 * HOUR + 54 * MINUTE, *minutes(3))
    assert planner.ids(3) == [[12, 13, 14, 15, 16]]


@pytest.mark.parametrize(
    ("recorded", "count", "told"),
    [
        (False, 4, r"its rows went up to offset 8 .* end at 4"),
        (True, 4, r"a window was planned to end behind 0/0{19}7-\S*, and now it is not there"),
        (True, 8, r".* is not there: it was truncated or recreated"),
        (True, 20, r".* is not there: .* as a new source, under another name, with `starts`"),
    ],
)
def test_a_log_that_was_made_anew_is_refused(
    planner: Planner, recorded: bool, count: int, told: str
) -> None:
    """However many rows it has by now."""
    planner.records = recorded
    written = planner.send(*minutes(0), *minutes(1))
    assert planner.ids(0, 1)
    delete(written)
    planner.offsets.clear()
    planner.send(*minutes(4, count))
    for number in (1, 2, 4):
        planner.refuses(f"partition 0: {told}", number)


def test_a_segment_before_a_border_that_was_replaced_is_refused(planner: Planner) -> None:
    last = planner.send(*minutes(0))[-1]
    assert planner.ids(0)
    content = last.read_bytes()
    last.write_bytes(content + b" ")
    told = rf"{last.name}, and now it has {len(content) + 1} bytes, .* had {len(content)} bytes"
    planner.refuses(told, 1)
    last.write_bytes(content)
    planner.send(*minutes(1))
    assert planner.ids(1) == [[4, 5, 6, 7]]


def test_a_partition_that_was_emptied_and_begins_again_is_refused(planner: Planner) -> None:
    """Though the windows that were planned since say nothing of it."""
    written = planner.send(*minutes(0))
    planner.send(*minutes(0), *minutes(1), *minutes(2), partition=1)
    assert planner.ids(0)
    delete(written)
    assert planner.ids(1)
    planner.offsets[0] = 0
    planner.send(*minutes(2, 6))
    planner.refuses(r"partition 0: .* is not there: .* recreated", 2)


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (to_us(START) // 10**6, "read as milliseconds; as seconds it would be 2026-03-01 00:00:00"),
        (0, "0 or -1 in place of a time"),
    ],
)
def test_rows_whose_own_times_are_wrong_are_not_waited_for(
    planner: Planner, ms: int, words: str
) -> None:
    """They were in no window, ever, and a run said to wait for the first one that has rows."""
    planner.send(START)
    (path,) = planner.send(START, partition=1)
    path.rename(path.with_name(path.name.replace(f"{to_us(START) // 1000:015d}", f"{ms:015d}")))
    with pytest.raises(DataError, match=r"partition 1: its rows' own times are wrong") as caught:
        planner.ids(0, starts=START)
    assert words in str(caught.value)
    planner.send(START + MINUTE, partition=1)
    assert planner.ids(0, starts=START) in ([[0, 2]], [[0, 1, 2]]), "one such row is odd"
    planner.send(*[datetime(1970, 1, 2, tzinfo=UTC)] * 30, partition=1)
    assert len(planner.ids(1, starts=START)[0]) == 30, "a line that has begun gets them"


def test_a_log_of_years_to_come_is_not_waited_for(planner: Planner) -> None:
    planner.send(datetime(5138, 11, 16, tzinfo=UTC))
    planner.refuses(r"own times are wrong .*the newest: 5138-11-16", 0, starts=START)
    planner.send(START, partition=1)
    assert planner.ids(0, starts=START) == [[1]], "those come with what follows them"


def test_a_partition_that_ends_in_years_to_come_is_one_finding(planner: Planner) -> None:
    planner.send(START)
    planner.send(START, datetime(5138, 11, 16, tzinfo=UTC), partition=1)
    with closing(planner.opened()) as source:
        (found,) = source.findings()
    assert "partition 1: its rows' own times are wrong (the newest: 5138-11-16" in found.message


def test_a_log_of_wrong_times_is_one_finding(planner: Planner) -> None:
    planner.send(datetime(1970, 1, 21, tzinfo=UTC), datetime(1970, 1, 22, tzinfo=UTC))
    with closing(planner.opened()) as source:
        (found,) = source.findings()
        planner.send(START)
        assert source.findings() == []
    assert (found.path, found.code) == (("options", "path"), "row-times")
    assert (
        "(the newest: 1970-01-22 00:00:00+00:00, read as milliseconds; as seconds" in found.message
    )


@pytest.mark.guarantee(
    "the folder of a partition of a log is gone",
    "red for later windows, until it is back or `starts` says that they do without it",
)
def test_a_partition_whose_folder_is_gone_is_never_silent(planner: Planner) -> None:
    planner.send(*minutes(0), *minutes(1))
    planner.send(*minutes(0), *minutes(1), partition=1)
    assert planner.ids(0, 1) == [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    gone = planner.root / "log" / "1"
    away = gone.rename(planner.root / "away")
    planner.send(*minutes(2), *minutes(3))
    told = r"partition 1: its folder is gone.* declare `starts: 2026-03-01T02:00Z`"
    for hours in ([2], [2, 3]):
        with pytest.raises(RowsDeletedError, match=told) as caught:
            planner.ids(*hours)
        assert list(caught.value.reasons) == [span(hour) for hour in hours]
    with pytest.raises(RowsDeletedError, match="offsets 4 to 8, and those before 8 were deleted"):
        planner.ids(1, 2)
    starts = START + 2 * HOUR
    assert planner.ids(2, starts=starts) == [[16, 17, 18, 19]]
    assert planner.ids(3, starts=starts) == [[20, 21, 22, 23]], "it holds nothing back any more"
    with pytest.raises(RowsDeletedError, match=told):
        planner.ids(3)
    away.rename(gone)
    planner.send(*minutes(4), partition=1)
    assert planner.ids(4) == [[24, 25, 26, 27]], "it goes on where it ended"


def moved(planner: Planner) -> Path:
    """A log with late rows, moved after its first window was planned."""
    planner.send(*minutes(0))
    planner.send(*minutes(0), partition=1)
    assert planner.ids(0) == [[*range(8)]]
    planner.send(START + 59 * MINUTE, *minutes(1))
    (planner.root / "log").rename(planner.root / "new")
    planner.options = {"path": "new"}
    return planner.root / "new"


@pytest.mark.guarantee(
    "a log is moved",
    "red, until `options.moved` names its old path; late rows are then in the next window. Red "
    "too if the last planned segments are not there as they were",
)
def test_a_log_that_was_moved_keeps_its_borders(planner: Planner) -> None:
    new = moved(planner)
    planner.refuses(r"if log was moved here, `options\.moved: log`", 1)
    planner.options["moved"] = "log"
    late = [8, 9, 10, 11, 12]
    assert planner.ids(1) == [late], "what is late is in the next window"
    new.rename(planner.root / "newer")
    planner.options["path"] = "newer"
    assert planner.ids(1, 2) == [late, []], "moved once more"


@pytest.mark.parametrize("fault", ["away", "longer", "other"])
def test_another_log_is_not_taken_for_a_moved_one(planner: Planner, fault: str) -> None:
    new = moved(planner)
    planner.options["moved"] = "log"
    last = max((new / "1").glob("*.arrow"))
    content = last.read_bytes()
    had = f"and had {len(content)} bytes, sha256"
    if fault == "away":
        last.unlink()
        told = f"1/{last.name} is not there"
    elif fault == "longer":
        last.write_bytes(content + b" ")
        told = f"1/{last.name} has {len(content) + 1} bytes, .* {had}"
    else:
        last.write_bytes(content[:-1] + b" ")
        told = f"1/{last.name} has {len(content)} bytes, .* {had}"
    planner.refuses(told, 1)


def test_a_log_that_takes_turns_with_another_is_refused(planner: Planner) -> None:
    """The first one's borders say nothing of the time in which the other was read."""
    moved(planner)
    assert planner.ids(1, starts=START + HOUR) == [[9, 10, 11, 12]]
    (planner.root / "new").rename(planner.root / "log")
    planner.options = {"path": "log"}
    planner.refuses(r"up to 2026-03-01T02:00Z were planned from a different", 2)
