"""Figures of slices over windows, of features with many values."""

from __future__ import annotations

import numpy as np
from support.stages import pipeline

from forebay.executors.judging.event_figures import SLICE_VALUES_MAX, EventFigures, pooled_event
from forebay.executors.judging.event_rows import EventRows

WINDOWS, VALUES, ROWS = 5, 40, 4_000
MANY = pipeline(
    ("a",),
    dataset={"features": {"user": {"encode": "hash", "buckets": 1_000}}, "slices": ["user"]},
    model={"kind": "towers"},
)


def window(number: int) -> EventRows:
    """Rows of users that no other window has, and of user 1, whom half of them are of."""
    random = np.random.default_rng(number)
    users = random.integers(2 + number * VALUES, 2 + (number + 1) * VALUES, ROWS)
    labels = (random.random(ROWS) < 0.4).astype(np.float32)
    scores = (labels * 0.2 + random.random(ROWS) * 0.8).astype(np.float32)
    return EventRows(
        window=f"w{number}",
        columns=("mixture",),
        labels=labels,
        sources=np.zeros(ROWS, np.int32),
        scores=scores[:, np.newaxis],
        slices={"user": np.where(random.random(ROWS) < 0.5, 1, users)},
        rows=ROWS,
        gone=0,
        before=0,
        left_out=0,
        all_here=True,
    )


def test_pooled_slices_are_bounded_and_leave_no_row_out() -> None:
    """Each window shows the values with most rows there: together they would be any number."""
    figures = [EventFigures.of(window(number), MANY) for number in range(WINDOWS)]
    assert {len(one.parts["user"]) for one in figures} == {SLICE_VALUES_MAX + 1}
    found = pooled_event(figures).slices["user"]
    assert len(found) == SLICE_VALUES_MAX + 1
    assert sum(one["mixture"].rows for one in found.values()) == WINDOWS * ROWS
    first, rest = found["bucket 1"]["mixture"], found["all others"]["mixture"]
    assert first.rows == sum(one.parts["user"]["bucket 1"].rows for one in figures)
    assert all(one["mixture"].rows <= first.rows for one in found.values())
    assert 0.6 < rest.auc.value < 0.8
