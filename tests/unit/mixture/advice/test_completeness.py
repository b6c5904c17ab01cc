"""Fresh labels against complete ones: at publication, by age, and if nothing is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.there import there

from forebay.mixture.advice.completeness import (
    AGES_SECONDS,
    Completeness,
    CompleteRows,
    FreshRows,
    measure_completeness,
)

HOUR = 3600.0
NAN = float("nan")


def columns(*rows: tuple[float, float, float]) -> tuple[Any, Any, Any]:
    """Events, labels, and how long each waited or came late."""
    ids, labels, times = zip(*rows, strict=True)
    return np.array(ids, np.int64), np.array(labels, np.float32), np.array(times, np.float32)


def ages(found: Completeness) -> list[tuple[Any, ...]]:
    return [
        (each.after_seconds, each.until_seconds, each.share.part, each.share.whole)
        for each in found.by_age
    ]


def test_by_publication_each_copy_counts_at_its_age() -> None:
    fresh = columns(
        (1, 0, 0.1 * HOUR), (1, 1, 2 * HOUR), (2, 0, 2 * HOUR), (3, 1, 30 * HOUR), (4, 1, NAN)
    )
    found = measure_completeness(
        FreshRows(*fresh, np.zeros(5, np.int32)),
        CompleteRows(*columns(*((event, 1, NAN) for event in (1, 2, 3, 4)))),
    )
    assert ages(found) == [(0, 900, 0, 1), (3600, 3 * 3600, 1, 2), (24 * 3600, 48 * 3600, 1, 1)]
    share = there(found.at_publication)
    assert (share.part, share.whole, found.wait_seconds) == (2, 4, 2 * HOUR)


def test_by_known_at_each_positive_counts_once_by_its_delay() -> None:
    complete = columns(
        (1, 1, 0.2 * HOUR), (2, 1, 5 * HOUR), (3, 1, NAN), (2, 1, 5 * HOUR), (4, 0, 1)
    )
    found = measure_completeness(
        FreshRows(*columns((1, 1, NAN), (2, 0, NAN)), np.zeros(2, np.int32)),
        CompleteRows(*complete),
    )
    assert [each[1] for each in ages(found)] == list(AGES_SECONDS)
    assert [each[2:] for each in ages(found)] == [(1, 2), (1, 2), (1, 2), *[(2, 2)] * 5]
