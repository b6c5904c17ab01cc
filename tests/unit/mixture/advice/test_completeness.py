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


def fresh(ids: list[int], labels: list[float], waits: list[float] | None = None) -> FreshRows:
    return FreshRows(
        np.array(ids, np.int64),
        np.array(labels, np.float32),
        np.array([NAN] * len(ids) if waits is None else waits, np.float32),
        np.zeros(len(ids), np.int32),
    )


def complete(
    ids: list[int], labels: list[float], delays: list[float] | None = None
) -> CompleteRows:
    return CompleteRows(
        np.array(ids, np.int64),
        np.array(labels, np.float32),
        np.array([NAN] * len(ids) if delays is None else delays, np.float32),
    )


def ages(found: Completeness) -> list[tuple[Any, ...]]:
    return [
        (each.after_seconds, each.until_seconds, each.share.part, each.share.whole)
        for each in found.by_age
    ]


def test_by_publication_each_copy_counts_at_its_age() -> None:
    waits = [0.1 * HOUR, 2 * HOUR, 2 * HOUR, 30 * HOUR, NAN]
    found = measure_completeness(
        fresh([1, 1, 2, 3, 4], [0, 1, 0, 1, 1], waits), complete([1, 2, 3, 4], [1, 1, 1, 1])
    )
    assert ages(found) == [(0, 900, 0, 1), (3600, 3 * 3600, 1, 2), (24 * 3600, 48 * 3600, 1, 1)]
    share = there(found.at_publication)
    assert (share.part, share.whole, found.wait_seconds) == (2, 4, 2 * HOUR)


def test_by_known_at_each_positive_counts_once_by_its_delay() -> None:
    delays = [0.2 * HOUR, 5 * HOUR, NAN, 5 * HOUR, 1.0]
    found = measure_completeness(
        fresh([1, 2], [1, 0]), complete([1, 2, 3, 2, 4], [1, 1, 1, 1, 0], delays)
    )
    assert [each[1] for each in ages(found)] == list(AGES_SECONDS)
    assert [each[2:] for each in ages(found)] == [(1, 2), (1, 2), (1, 2), *[(2, 2)] * 5]
