"""Rows that a window trained on, read and learnt from, by its seal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from forebay.datatasks.tasks import Position, TaskProgress
from forebay.executors.trainer.window.sealed_rows import (
    learnt_rows,
    read_rows,
    row_times,
    window_rows,
)
from forebay.executors.window_files.checkpoints import Seal
from forebay.mixture.row_sums import RowSums


def seal(
    before: list[int], after: list[int], learnt: dict[str, list[int]], base: dict[str, list[int]]
) -> Seal:
    of = {"window": "2026-03-01", "generation": 1, "step": 7, "window_step": 2, "final": True}
    seen = {"base_seen": [RowSums(rows=rows) for rows in before]}
    seen["seen"] = [RowSums(rows=rows) for rows in after]
    kept: Any = {"base_learnt": base, "learnt": learnt, "progress": {}, "scores": []}
    at = datetime(2026, 3, 1, tzinfo=UTC)
    whose = {"model_fingerprint": "clicks", "sealed_at": at, "runtime": "local"}
    return Seal.model_validate(of | seen | kept | whose)


def test_rows_of_the_window_are_those_since_it_began() -> None:
    assert window_rows(seal([10, 5], [13, 5], {}, {})).tolist() == [3, 0]


def test_variants_learnt_what_they_did_not_know_before() -> None:
    """A variant that learnt nothing says so; one that left out nothing says nothing of it."""
    learnt = {"stream": [0, 9], "stream/paused": [0, 4], "batch": [6, 0]}
    sealed = seal([0, 0], [6, 9], learnt, {"stream": [0, 2], "stream/paused": [0, 4]})
    assert learnt_rows(["history", "clicks"], sealed) == {
        "history": {"stream": 0, "batch": 6},
        "clicks": {"stream": 7, "batch": 0},
    }


def test_a_model_that_only_counts_learnt_nothing() -> None:
    assert learnt_rows(["history"], seal([0], [6], {}, {})) == {}


def test_tasks_of_a_source_are_added_and_the_first_odd_one_is_told() -> None:
    def ended(**counts: int | str) -> TaskProgress:
        return TaskProgress.model_validate({"position": Position(0, 9), **counts})

    found = read_rows(
        ["clicks", "history"],
        {
            "clicks/1": ended(rows_read=5, dead_rows=1, late_rows=2),
            "clicks/2": ended(rows_read=7, odd_timestamps=2, first_odd="2026", label_not_known=3),
        },
    )
    assert found["history"].rows == 0
    odd = {"odd_timestamps": 2, "first_odd": "2026"}
    counts = {"rows": 12, "dead": 1, "late": 2, "label_not_known": 3}
    assert found["clicks"].model_dump(exclude={"offsets"}) == counts | odd


def test_the_first_and_the_last_time_are_those_of_all_tasks() -> None:
    def ended(first: int | None, last: int | None) -> TaskProgress:
        return TaskProgress(position=Position(0, 9), first_us=first, last_us=last)

    tasks = {
        "clicks@now/1": ended(5, 9),
        "clicks@now/2": ended(-3, 7),
        "clicks@old/1": ended(0, 0),
        "history/1": ended(None, None),
    }
    assert row_times(tasks) == {"clicks@now": (-3, 9), "clicks@old": (0, 0)}
