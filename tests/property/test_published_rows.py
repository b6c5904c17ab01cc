"""Rows of a stream by event id: sorted arrays against a dictionary of the earliest row."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forebay.executors.label_join.join import GrowingRows, PublishedRows

Row = tuple[int, int, int, int]  # event id, fresh, wait, mark
Listed = list[Row]
ROWS = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(0, 1), st.integers(0, 3), st.integers(-3, 6)),
    max_size=12,
)
IDS = np.arange(-6, 7)


def published(rows: Listed) -> PublishedRows:
    ids, fresh, waits, marks = np.array(rows, np.int64).reshape(-1, 4).T
    return PublishedRows.of(ids, fresh.astype(np.float32), waits.astype(np.float32), marks)


def earliest(rows: Listed) -> dict[int, Row]:
    """The row with the smallest mark, then wait, then label, of each event."""
    found: dict[int, Row] = {}
    for row in sorted(rows, key=lambda row: (row[3], row[2], row[1])):
        found.setdefault(row[0], row)
    return found


def listed(rows: PublishedRows) -> Listed:
    columns = (rows.ids, rows.fresh, rows.waits.astype(int), rows.marks)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(ROWS)
def test_of_each_event_the_earliest_row_stays(rows: Listed) -> None:
    wanted = earliest(rows)
    assert listed(published(rows)) == [wanted[each] for each in sorted(wanted)]


@given(st.lists(ROWS, max_size=4), st.integers(-3, 7))
def test_of_several_windows_the_first_that_is_kept_counts(
    windows: list[list[Row]], since: int
) -> None:
    rows = PublishedRows.none()
    for window in windows:
        rows = rows.followed_by(published(window)).since(-3)
    rows = rows.since(since)
    assert rows.ids.tolist() == sorted(rows.ids.tolist())
    places = rows.places(IDS)
    for event, place in zip(IDS.tolist(), places.tolist(), strict=True):
        kept = [
            earliest(window)[event]
            for window in windows
            if event in earliest(window) and earliest(window)[event][3] >= since
        ]
        assert (place >= 0) == bool(kept)
        if kept:
            assert listed(rows)[place] == kept[0]


@given(st.lists(ROWS, max_size=8), st.lists(st.integers(-4, 7), min_size=13, max_size=13))
def test_rows_that_grow_find_the_earliest_in_any_order(
    minibatches: list[list[Row]], bounds: list[int]
) -> None:
    forwards, backwards = GrowingRows(), GrowingRows()
    for rows in minibatches:
        forwards.add(published(rows))
    for rows in reversed(minibatches):
        backwards.add(published(rows))
    wanted = earliest([row for rows in minibatches for row in rows])
    latest = np.array(bounds, np.int64)
    for grown in (forwards, backwards):
        fresh, waits = grown.find(IDS, latest)
        for event, bound, label, wait in zip(
            IDS.tolist(), bounds, fresh.tolist(), waits.tolist(), strict=True
        ):
            row = wanted.get(event)
            if row is None or row[3] > bound:
                assert math.isnan(label)
                assert math.isnan(wait)
            else:
                assert (label, wait) == (row[1], row[2])
