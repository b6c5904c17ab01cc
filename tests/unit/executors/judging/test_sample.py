"""Which events are judged: decided by ids alone, in whatever order they arrive."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.sources.common.values.row_ids import splitmix64
from forebay.executors.judging.sample import EventSample, in_sample

IDS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9), max_size=60)
BOUNDS = st.integers(1, 12)


def hashed(event_id: int) -> int:
    return int(splitmix64(np.array([event_id], np.int64).view(np.uint64))[0])


def chosen(ids: list[int], rows_max: int) -> set[int]:
    """The definition: the events with the smallest hashes."""
    return set(sorted(set(ids), key=hashed)[:rows_max])


@given(IDS, BOUNDS)
def test_the_sample_is_the_events_with_the_smallest_hashes(ids: list[int], rows_max: int) -> None:
    mask, wanted = in_sample(np.array(ids, np.int64), rows_max), chosen(ids, rows_max)
    assert mask.tolist() == [each in wanted for each in ids]


@given(st.lists(IDS, max_size=8), BOUNDS, st.integers(0, 8), st.randoms())
def test_no_order_and_no_restart_changes_it(
    parts: list[list[int]], rows_max: int, restart_after: int, order: random.Random
) -> None:
    order.shuffle(parts)
    sample, accepted = EventSample(rows_max), np.empty(0, np.int64)
    for number, part in enumerate(parts):
        if number == restart_after:
            sample = EventSample(rows_max, accepted)
        ids = np.array(part, np.int64)
        accepted = np.concatenate([accepted, ids[sample.accept(ids)]])
    found = accepted[in_sample(accepted, rows_max)]
    every = [each for part in parts for each in part]
    assert set(found.tolist()) == chosen(every, rows_max)
    assert sorted(found.tolist()) == sorted(each for each in every if each in set(found.tolist()))


def test_of_many_rows_few_more_than_the_bound_are_taken() -> None:
    sample, taken = EventSample(1_000), 0
    for first in range(0, 1_000_000, 1_000):
        taken += len(sample.accept(np.arange(first, first + 1_000)))
    assert 1_000 <= taken < 1_000 * 2 * np.log(1_000)


def test_nothing_is_taken_where_nothing_is_judged() -> None:
    assert len(EventSample(0).accept(np.arange(9))) == 0
