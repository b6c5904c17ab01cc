"""How long a line took so far, and how long more rows would take."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.model_lines import record_link

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.training_pace import Pace, pace_of
from forebay.home.paths import Home


@pytest.fixture
def chain(tmp_path: Path) -> ModelChain:
    """Windows of 100, 100 and 400 rows, at 50 rows a second."""
    chain = ModelChain(Home(tmp_path), "ads")
    for day, rows in ((2, 100), (3, 100), (4, 400)):
        record_link(chain, f"2026-03-0{day}", {"clicks": rows}, seconds=rows / 50)
    return chain


def test_the_pace_of_a_line(chain: ModelChain) -> None:
    pace = pace_of(chain)
    assert pace == Pace(windows=3, rows=600, work_seconds=12.0)
    assert pace.seconds([{"clicks": 50}, {"clicks": 100, "history": 50}]) == pytest.approx(4.0)
    assert pace.seconds([]) == 0


def test_a_window_of_unknown_rows_counts_as_an_average_one(chain: ModelChain) -> None:
    assert pace_of(chain).seconds([{"clicks": 50, "topic": None}]) == pytest.approx(4.0)


def test_no_pace_without_a_trained_window(tmp_path: Path) -> None:
    none = pace_of(ModelChain(Home(tmp_path), "ads"))
    assert none == Pace(windows=0, rows=0, work_seconds=0)
    assert none.seconds([{"clicks": 50}]) is None


def test_windows_without_rows_take_their_time_too() -> None:
    assert Pace(windows=2, rows=0, work_seconds=6.0).seconds([{"clicks": 5}]) == 3.0


def test_only_the_newest_20_windows_say_the_pace(tmp_path: Path) -> None:
    chain = ModelChain(Home(tmp_path), "ads")
    for day in range(1, 23):
        record_link(chain, f"2026-03-{day:02d}", {"clicks": 10}, seconds=day)
    assert pace_of(chain) == Pace(windows=20, rows=200, work_seconds=sum(range(3, 23)))
