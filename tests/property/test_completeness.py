"""Completeness of labels equals what a loop over rows finds, however rows are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forebay.mixture.advice.completeness import CompleteRows, FreshRows, measure_completeness
from forebay.mixture.advice.decision import SAME, Situation, recommend, regimes_like
from forebay.mixture.advice.regimes import measured_regimes

NAN = float("nan")
EVENTS = st.integers(0, 12)
LABELS = st.sampled_from([0.0, 1.0, NAN])
FRESH = st.lists(st.tuples(EVENTS, LABELS, st.integers(0, 3)), max_size=40)
COMPLETE = st.lists(st.tuples(EVENTS, LABELS), max_size=40)
SITUATIONS = st.builds(
    Situation,
    st.floats(0, 1),
    st.none() | st.floats(0, 1),
    has_batch=st.booleans(),
    crowded=st.booleans(),
)
VARIANTS = st.sampled_from(["stream", "mixed", "mixture", "batch", "stream+head", "mixture+head"])


def columns(rows: Sequence[tuple[Any, ...]]) -> tuple[Any, Any, Any]:
    """Events, labels, and no times."""
    ids = np.array([each[0] for each in rows], np.int64)
    labels = np.array([each[1] for each in rows], np.float32)
    return ids, labels, np.full(len(rows), np.nan, np.float32)


def first_labels(rows: Sequence[tuple[Any, ...]]) -> dict[int, float]:
    return {event: label for event, label, *_ in reversed(rows) if not math.isnan(label)}


@given(FRESH, COMPLETE)
def test_a_loop_over_rows_finds_the_same(
    fresh: list[tuple[int, float, int]], complete: list[tuple[int, float]]
) -> None:
    found = measure_completeness(
        FreshRows(*columns(fresh), np.array([each[2] for each in fresh], np.int32)),
        CompleteRows(*columns(complete)),
    )
    said, true = first_labels(fresh), first_labels(complete)
    twins = [event for event in said if event in true]
    positive = [event for event in twins if true[event] == 1]
    known = [event for event in positive if said[event] == 1]
    assert (found.events, found.twins) == (len(said), len(twins))
    assert (found.wait_seconds, found.by_age) == (None, ())
    assert found.taken_back == sum(said[event] == 1 and true[event] == 0 for event in twins)
    share = found.at_publication
    assert (share is None) == (not positive)
    if share is not None:
        assert (share.part, share.whole) == (len(known), len(positive))
        assert 0 <= share.low <= share.value <= share.high <= 1


@given(SITUATIONS, VARIANTS)
def test_advice_can_be_followed_and_costs_nothing_where_it_was_measured(
    situation: Situation, declared: str
) -> None:
    table = measured_regimes()
    found = recommend(situation, declared, table)
    if found is None:
        assert not situation.has_batch
        return
    assert {gain.regime for gain in found.gains} <= {
        each.name for each in regimes_like(situation, table)
    }
    if not found.changes:
        assert found.variant == declared
        return
    assert situation.has_batch or found.variant == "stream"
    like = regimes_like(situation, table)
    losses = {name: sum(each.loss_of(name) for each in like) / len(like) for name in like[0].aucs}
    assert losses[found.variant] <= losses["batch"] + SAME or not situation.has_batch
    again = recommend(situation, found.variant, table)
    assert again is not None
    assert (again.changes, again.variant) == (False, found.variant)
