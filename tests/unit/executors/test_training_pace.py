"""How long a line has taken so far, and how long more windows and rows would take."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.jobs import request, store_job
from support.links import AT
from support.model_lines import record_link

from forebay.executors.job.job_id import range_job_id, window_job_id
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.training_pace import (
    DEFAULT_JOB_SECONDS,
    DEFAULT_ROW_SECONDS,
    DEFAULT_WINDOW_SECONDS,
    Pace,
    pace_of,
)
from forebay.home.paths import Home


@pytest.fixture
def chain(tmp_path: Path) -> ModelChain:
    return ModelChain(Home(tmp_path), "ads")


def day(number: int) -> str:
    return f"2026-03-{number:02d}"


def job(chain: ModelChain, days: Sequence[int], seconds: float, **more: Any) -> None:
    """A job that trained these windows in so many seconds."""
    names = {day(number): 1 for number in days}
    job_id = range_job_id("ads", "main", day(days[0]), day(days[-1]))
    times = {"submitted_at": AT, "ended_at": AT + timedelta(seconds=seconds)}
    told = {"state": "succeeded", **times, **more}
    store_job(request(chain.home, job_id, names), **told)


def train(chain: ModelChain, number: int, rows: int, seconds: float, **more: Any) -> None:
    record_link(chain, day(number), {"clicks": rows}, seconds=seconds, **more)


def test_start_windows_and_rows_are_told_apart(chain: ModelChain) -> None:
    """76 s for 600 rows: 70 s to start, 1 s for each window and 5 ms for each row."""
    train(chain, 1, 100, 41.5)  # 40 s of it trace the model
    train(chain, 2, 100, 1.5)
    train(chain, 3, 400, 3.0)
    job(chain, [1, 2, 3], 76.0)
    pace = pace_of(chain)
    assert (pace.windows, pace.jobs, pace.rows) == (3, 1, 600)
    assert pace.window_seconds == pytest.approx(1.0)
    assert pace.row_seconds == pytest.approx(0.005)
    assert pace.job_seconds == pytest.approx(70.0)
    assert pace.seconds([{"clicks": 600}]) == pytest.approx(70 + 1 + 3)
    assert pace.seconds([{"clicks": 100}, {"clicks": 50, "history": 50}]) == pytest.approx(73.0)
    assert pace.seconds([]) == 0
    assert pace.seconds([{"clicks": 50, "topic": None}]) == pytest.approx(72.0), "an average one"


def test_jobs_of_one_window_each_have_their_start_too(chain: ModelChain) -> None:
    for number in (1, 2):
        train(chain, number, 1_000, 30.0)
        job_id = window_job_id("ads", "main", day(number), 1)
        times = {"submitted_at": AT, "ended_at": AT + timedelta(seconds=52)}
        store_job(request(chain.home, job_id, {day(number): 1}), "succeeded", **times)
    pace = pace_of(chain)
    assert (pace.window_seconds, pace.row_seconds) == (DEFAULT_WINDOW_SECONDS, DEFAULT_ROW_SECONDS)
    assert pace.jobs == 2
    assert pace.seconds([{"clicks": 1_000}]) == pytest.approx(52.0)


def test_windows_that_are_alike(chain: ModelChain) -> None:
    for number in (1, 2, 3):
        train(chain, number, 500, 2.0)
    job(chain, [1, 2, 3], 30.0)
    pace = pace_of(chain)
    assert pace.window_seconds == DEFAULT_WINDOW_SECONDS
    assert pace.row_seconds == pytest.approx(0.002)
    assert pace.seconds([{"clicks": 500}] * 3) == pytest.approx(30.0)


def test_a_small_window_that_was_slow_makes_no_row_cheaper_than_nothing(chain: ModelChain) -> None:
    for number, (rows, seconds) in enumerate([(10, 9.0), (100, 8.0), (1_000, 2.0)], start=2):
        train(chain, number, rows, seconds)
    pace = pace_of(chain)
    assert pace.window_seconds == DEFAULT_WINDOW_SECONDS
    assert pace.row_seconds > 0


def test_windows_without_rows_take_their_time_too(chain: ModelChain) -> None:
    train(chain, 1, 0, 3.0)
    pace = pace_of(chain)
    assert (pace.window_seconds, pace.row_seconds) == (3.0, 0.0)


@pytest.mark.parametrize(
    "told",
    [
        {"state": "failed"},
        {"restarts": {"supervisor": 0, "driver": 0, "data": 1, "trainer": 0}},
    ],
)
def test_jobs_that_were_cut_off_say_nothing_of_the_start(
    chain: ModelChain, told: dict[str, Any]
) -> None:
    train(chain, 1, 100, 2.0)
    job(chain, [1], 900.0, **told)
    assert (pace_of(chain).jobs, pace_of(chain).job_seconds) == (0, DEFAULT_JOB_SECONDS)


def test_resumed_windows_say_nothing_of_the_start(chain: ModelChain) -> None:
    train(chain, 1, 100, 2.0, resumed_from_step=5)
    job(chain, [1], 900.0)
    assert pace_of(chain).jobs == 0


def test_jobs_with_windows_that_are_gone_say_nothing(chain: ModelChain) -> None:
    train(chain, 2, 100, 2.0)
    job(chain, [1, 2], 900.0)
    assert pace_of(chain).jobs == 0


def test_the_defaults_without_a_trained_window(chain: ModelChain) -> None:
    none = pace_of(chain)
    assert none == Pace()
    assert (none.windows, none.jobs) == (0, 0)
    alone = DEFAULT_JOB_SECONDS + DEFAULT_WINDOW_SECONDS + 50 * DEFAULT_ROW_SECONDS
    assert none.seconds([{"clicks": 50}]) == pytest.approx(alone)
    assert none.seconds([{"clicks": 50, "topic": None}]) is None


def test_only_the_newest_20_windows_say_the_pace(chain: ModelChain) -> None:
    for number in range(1, 23):
        train(chain, number, 10, number)
    pace = pace_of(chain)
    assert (pace.windows, pace.rows) == (20, 200)
    mean = sum(range(3, 23)) / 20
    assert pace.window_seconds + 10 * pace.row_seconds == pytest.approx(mean)
