"""WindowTimetable: what the scheduler, a backfill and a user get, through Airflow's own code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import DataInterval, TimeRestriction
from airflow.utils.types import DagRunType
from hypothesis import given
from hypothesis import strategies as st
from pendulum import instance
from support.there import there

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.operators import timetable as module
from forebay.operators.timetable import WindowTimetable


def at(text: str) -> datetime:
    return instance(datetime.fromisoformat(text).replace(tzinfo=UTC))


def walk(
    timetable: WindowTimetable,
    first: datetime | None,
    last: datetime | None,
    count: int,
    *,
    catchup: bool = True,
) -> list[tuple[datetime, datetime, datetime]]:
    """As the scheduler asks, one run after the other: start, end, earliest time to run."""
    found: list[tuple[datetime, datetime, datetime]] = []
    interval: DataInterval | None = None
    while len(found) < count:
        info = timetable.next_dagrun_info(
            last_automated_data_interval=interval, restriction=TimeRestriction(first, last, catchup)
        )
        if info is None:
            break
        interval = info.data_interval
        found.append((interval.start, interval.end, info.run_after))
    return found


def backfill(timetable: WindowTimetable, first: str, last: str) -> list[str]:
    """Window starts of a backfill, as Airflow makes its list from the stored DAG."""
    dag = DAG("stored", schedule=timetable, start_date=at("2018-01-01"))
    stored = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert stored.timetable == timetable
    infos = stored.iter_dagrun_infos_between(at(first), at(last))
    return [f"{info.logical_date:%Y-%m-%dT%H}" for info in infos]


def next_start(timetable: WindowTimetable, last: str, *, catchup: bool = True) -> str:
    """Start of the window after an automated run of the hour that began at `last`."""
    info = timetable.next_dagrun_info(
        last_automated_data_interval=DataInterval(at(last), at(last) + timedelta(hours=1)),
        restriction=TimeRestriction(at("2026-03-01"), None, catchup=catchup),
    )
    return f"{there(info).logical_date:%Y-%m-%dT%H}"


def test_without_catchup_the_newest_closed_window_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime(2026, 3, 10, 10, 37, tzinfo=UTC)

    monkeypatch.setattr(module, "datetime", Clock)
    hourly = WindowTimetable("1h")
    (first,) = walk(hourly, at("2026-03-01"), None, 1, catchup=False)
    assert f"{first[0]:%Y-%m-%dT%H:%M}" == "2026-03-10T09:00"
    # A start behind it is kept, and what has run already is never run again.
    (later,) = walk(hourly, at("2026-03-10T11:00:00"), None, 1, catchup=False)
    assert f"{later[0]:%H:%M}" == "11:00"
    assert next_start(hourly, "2026-03-10T09:00:00", catchup=False) == "2026-03-10T10"


def test_bounds_of_its_own_are_for_scheduled_runs() -> None:
    """As in a DAG without dates. A backfill brings dates, and gets what it asks for."""
    daily = WindowTimetable("1d", "UTC", at("2026-03-01"), at("2026-03-02T23:59:59"))
    assert [f"{start:%d}" for start, _, _ in walk(daily, None, None, 9)] == ["01", "02"]
    assert len(walk(daily, at("2026-02-01"), at("2026-03-10"), 99)) == 38
    assert walk(WindowTimetable("1d"), None, None, 9) == [], "without a start nothing runs"


def test_a_change_of_size_goes_on_at_the_next_border() -> None:
    """The last run was hourly and ended at 05:00; the first day that starts after it is next."""
    assert next_start(WindowTimetable("1d"), "2026-03-10T04:00:00") == "2026-03-11T00"


@pytest.mark.parametrize(
    ("size", "zone", "asked", "start", "end"),
    [
        ("1h", "UTC", "2026-03-10T10:37:00", "10T10", "10T11"),
        ("1h", "UTC", "2026-03-10T10:00:00", "10T10", "10T11"),
        ("1d", "UTC", "2026-03-10T10:37:00", "10T00", "11T00"),
        ("1d", "America/New_York", "2026-03-08T04:30:00", "07T05", "08T05"),
        ("1d", "America/New_York", "2026-03-08T05:00:00", "08T05", "09T04"),
    ],
)
def test_the_window_of_a_manual_run(size: str, zone: str, asked: str, start: str, end: str) -> None:
    interval = WindowTimetable(size, zone).infer_manual_data_interval(run_after=at(asked))
    assert (f"{interval.start:%dT%H}", f"{interval.end:%dT%H}") == (start, end)


@pytest.mark.parametrize("size", ["1h", "1d"])
def test_a_date_at_the_end_of_the_calendar_is_refused_as_bad_input(size: str) -> None:
    with pytest.raises(ValueError, match="no window ends after 9999"):
        WindowTimetable(size).infer_manual_data_interval(run_after=at("9999-12-31T23:59:59"))


@pytest.mark.usefixtures("plugins")
def test_a_backfill_goes_by_window_starts_with_both_ends() -> None:
    hourly = WindowTimetable("1h")
    hours = [f"2026-03-10T0{hour}" for hour in range(3)]
    assert backfill(hourly, "2026-03-10T00:00:00", "2026-03-10T02:00:00") == hours
    assert backfill(hourly, "2026-03-10T00:30:00", "2026-03-10T01:59:00") == ["2026-03-10T01"]
    sao_paulo = WindowTimetable("1d", "America/Sao_Paulo")
    days = ["2018-11-03T03", "2018-11-04T03", "2018-11-05T02"]
    assert backfill(sao_paulo, "2018-11-03T03:00:00", "2018-11-05T02:00:00") == days


def test_it_is_stored_and_described() -> None:
    days = WindowTimetable("1d", "Europe/Berlin")
    assert WindowTimetable.deserialize(days.serialize()) == days
    assert days != WindowTimetable("1d")
    bounded = WindowTimetable("1d", "Europe/Berlin", at("2026-03-01"), at("2026-03-10"))
    assert WindowTimetable.deserialize(bounded.serialize()) == bounded != days
    assert len({days, WindowTimetable("1d", "Europe/Berlin")}) == 1
    assert days.summary == "1d Europe/Berlin"
    assert days.description == "Every day in Europe/Berlin, after it has ended"
    assert WindowTimetable(WindowSize.HOUR).summary == WindowTimetable("1h").summary == "1h"


@given(
    size=st.sampled_from(list(WindowSize)),
    zone=st.sampled_from(["UTC", "America/New_York", "America/Sao_Paulo", "Pacific/Apia"]),
    first=st.integers(1_300_000_000, 1_800_000_000).map(lambda at: datetime.fromtimestamp(at, UTC)),
    count=st.integers(1, 40),
)
def test_it_yields_all_windows(size: WindowSize, zone: str, first: datetime, count: int) -> None:
    """Every window that starts at `first` or later, in order, none left out, none twice."""
    grid = WindowGrid(size, zone)
    window = grid.at(first)
    expected = []
    while len(expected) < count:
        if window.start >= first:
            expected.append((window.start, window.end, window.end))
        window = grid.after(window)
    last = expected[-1][0]
    assert walk(WindowTimetable(size, zone), instance(first), instance(last), 50) == expected


def test_a_run_is_named_after_its_window() -> None:
    """Airflow's own name is the time after it: a run of 1 March was called after 2 March."""
    timetable, names = WindowTimetable("1d", "Europe/Berlin"), []
    info = timetable.next_dagrun_info(
        last_automated_data_interval=None,
        restriction=TimeRestriction(at("2026-03-01T00"), None, catchup=True),
    )
    assert info is not None
    for interval in (info.data_interval, None):
        asked = {"run_after": info.run_after, "data_interval": interval}
        names.append(timetable.generate_run_id(run_type=DagRunType.SCHEDULED, **asked))
    assert names == [
        "scheduled__2026-03-02_2026-03-02T23:00:00+00:00",
        "scheduled__2026-03-02T23:00:00+00:00",
    ]
