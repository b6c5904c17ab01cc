"""Lags of streams: of each row, from its publication to its step, and the newest that was used."""

from __future__ import annotations

import pytest

from forebay.datatasks.tasks import Position, TaskProgress
from forebay.executors.trainer.freshness import Freshness

S = 1_000_000


def at(rows: int, first: int | None, last: int | None) -> TaskProgress:
    return TaskProgress(position=Position(0, rows), rows_read=rows, first_us=first, last_us=last)


def test_each_row_waited_since_the_one_before_it_was_published() -> None:
    lags = Freshness(["clicks"])
    begun = at(90, 100 * S, 101 * S)
    lags.used({}, {"clicks/0": begun}, 103 * S)
    lags.used({"clicks/0": begun}, {"clicks/0": at(100, 100 * S, 102 * S)}, 121 * S)
    found = lags.lags()["clicks"]
    assert (found.rows, found.newest_us) == (100, 102 * S)
    assert found.p50_seconds == pytest.approx(3, rel=0.05)
    assert found.p99_seconds == pytest.approx(20, rel=0.05)


def test_the_newest_row_of_all_tasks_counts_and_history_does_not() -> None:
    lags = Freshness(["clicks"])
    assert lags.lags() == {}
    lags.used({}, {"clicks/1": at(1, 50 * S, 50 * S), "history/0": at(7, 9 * S, 9 * S)}, 51 * S)
    lags.used({}, {"clicks/0": at(1, 40 * S, 40 * S), "clicks/2": at(0, None, None)}, 51 * S)
    found = lags.lags()
    assert found.keys() == {"clicks"}
    assert (found["clicks"].newest_us, found["clicks"].rows) == (50 * S, 2)


def test_a_clock_that_is_behind_the_producer_s_gives_the_smallest_lag() -> None:
    lags = Freshness(["clicks"])
    lags.used({}, {"clicks/0": at(1, 60 * S, 60 * S)}, 50 * S)
    assert lags.lags()["clicks"].p99_seconds == pytest.approx(0.01)


def test_rows_that_waited_for_longer_than_promised_are_told() -> None:
    lags = Freshness(["clicks"], slo_seconds=10.0)
    lags.used({}, {"clicks/0": at(75, 100 * S, 100 * S)}, 105 * S)
    lags.used({}, {"clicks/1": at(25, 100 * S, 100 * S)}, 120 * S)
    found = lags.lags()["clicks"]
    assert found.late_share == pytest.approx(0.25)
    assert "25.0% too late" in found.text
