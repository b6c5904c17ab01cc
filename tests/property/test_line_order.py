"""A line's windows follow each other in time, whatever their sizes, zones and keys are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from support.links import link
from support.undone import undone

from forebay.config.specs.windows import Window, WindowGrid, WindowSize, warm_start_window
from forebay.datatasks.plans import plan_rows
from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.model_line.rows import line_rows, link_rows, link_writer
from forebay.executors.model_line.staleness import stale_reasons
from forebay.home.database.base import Database
from forebay.home.database.open import database_of
from forebay.home.paths import Home

ZONES = (
    *("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"),
    *("Pacific/Kiritimati", "America/Los_Angeles"),
)
grids = st.one_of(
    st.just(WindowGrid(WindowSize.HOUR)),
    st.sampled_from(ZONES).map(lambda zone: WindowGrid(WindowSize.DAY, zone)),
)
instants = st.datetimes(datetime(2006, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
WINDOWS = 5


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    found = database_of(Home(tmp_path_factory.mktemp("home")))
    found.prepare()
    return found


def plan(rows: Connection, window: Window, generation: int = 1) -> None:
    values = {"window": window.key, "generation": generation, "sources": {}, "fingerprint": "same"}
    made = WindowPlan.model_validate({**values, "start": window.start, "end": window.end})
    plan_rows.store_plan(rows, "ads", "main", made, {})


def train(rows: Connection, line: int, window: Window, generation: int = 1) -> Link:
    """As a trainer does: from the newest link of the window before."""
    before = link_rows.link_before(rows, line, window)
    changes = {"window": window.key, "start": window.start, "end": window.end}
    changes |= {"parent": before.name if before else None}
    trained = link("2026-01-01", generation=generation).model_copy(update=changes)
    link_writer.store_link(rows, line, "ads", trained)
    return trained


@pytest.mark.guarantee(
    "the key of a warm start sorts after those of its windows",
    "nothing; windows are ordered by instants",
)
@settings(max_examples=150)
@given(
    grids,
    instants,
    st.timedeltas(timedelta(minutes=1), timedelta(days=40)),
    st.permutations(range(WINDOWS + 1)),
    st.integers(0, WINDOWS - 1),
)
@example(  # the warm start of that very day: its key sorts after those of all windows
    WindowGrid(WindowSize.HOUR),
    datetime(2026, 3, 1, 5, tzinfo=UTC),
    timedelta(hours=5),
    list(range(WINDOWS + 1)),
    2,
)
def test_windows_come_in_the_order_of_time(
    database: Database,
    grid: WindowGrid,
    instant: datetime,
    history: timedelta,
    planned: list[int],
    again: int,
) -> None:
    windows = [grid.at(instant)]
    for _ in range(WINDOWS - 1):
        windows.append(grid.after(windows[-1]))
    line_windows = [warm_start_window(windows[0].start - history, windows[0]), *windows]
    keys = [window.key for window in line_windows]

    def work(rows: Connection) -> None:
        for number in planned:
            plan(rows, line_windows[number])
        line = line_rows.locked_line(rows, "ads", "main")
        for window in line_windows:
            train(rows, line, window)
        assert plan_rows.planned_windows(rows, "ads", "main") == keys
        assert line_rows.trained_windows(rows, line) == keys
        parents = [each.parent for each in link_rows.all_links(rows, line)]
        assert parents == [None, *(Parent(window=key, generation=1) for key in keys[:-1])]
        first = link_rows.first_link(rows, line)
        assert first is not None
        assert first.window == keys[0]
        assert [each.window for each in link_rows.last_links(rows, line, 2)] == keys[-2:]
        assert stale_reasons(rows, line) == {}
        retrained = windows[again]
        plan(rows, retrained, 2)
        assert train(rows, line, retrained, 2).parent == Parent(window=keys[again], generation=1)
        assert list(stale_reasons(rows, line)) == keys[again + 2 :]

    undone(database, work)
