"""Rows taken out of minibatches, and minibatches joined, against plain lists."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forebay.mixture.minibatch import Minibatch
from forebay.mixture.minibatch_rows import joined, take

Row = tuple[int, list[int]]
ROWS = st.lists(st.tuples(st.integers(0, 99), st.lists(st.integers(0, 9), max_size=3)), max_size=6)


def minibatch(rows: list[Row], *, timed: bool) -> Minibatch:
    numbers = np.array([number for number, _ in rows], np.int64)
    splits = np.concatenate([[0], np.cumsum([len(items) for _, items in rows])]).astype(np.int64)
    values = np.array([item for _, items in rows for item in items], np.int64)
    return Minibatch(
        feed="batch",
        row_ids=numbers,
        event_ids=numbers + 1,
        sources=numbers.astype(np.int32),
        labels=numbers.astype(np.float32),
        dense=numbers.astype(np.float32)[:, np.newaxis],
        ids=np.stack([numbers, -numbers], axis=1),
        lists=((splits, values),),
        event_times=numbers * 10 if timed else None,
    )


def plain(found: Minibatch) -> list[Row]:
    (splits, values), *_ = found.lists
    lists = [values[a:b].tolist() for a, b in pairwise(splits)]
    return list(zip(found.row_ids.tolist(), lists, strict=True))


@given(ROWS, st.data(), st.booleans())
def test_rows_are_taken_in_the_order_asked_for(
    rows: list[Row], data: st.DataObject, timed: bool
) -> None:
    places = data.draw(st.lists(st.integers(0, max(0, len(rows) - 1)), max_size=5)) if rows else []
    found = take(minibatch(rows, timed=timed), np.array(places, np.intp))
    assert plain(found) == [rows[place] for place in places]
    assert found.ids.tolist() == [[rows[place][0], -rows[place][0]] for place in places]
    assert (found.event_times is None) is not timed
    assert found.waits is None
    assert found.feed == "batch"


@given(st.lists(ROWS, min_size=1, max_size=4), st.booleans())
def test_joined_minibatches_hold_all_rows_in_order(parts: list[list[Row]], timed: bool) -> None:
    found = joined([minibatch(part, timed=timed) for part in parts])
    assert plain(found) == [row for part in parts for row in part]
    assert found.dense.shape == (sum(map(len, parts)), 1)
    assert (found.event_times is None) is not timed
