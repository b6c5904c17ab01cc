"""Windows while they run, on a terminal and elsewhere."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from examples.demo.airflow import live
from examples.demo.airflow.live import Shown
from examples.demo.airflow.window_view import WindowView

VIEWS = [
    WindowView("2013-06-01", "running", {"timer": "running", "joiner": ""}, {"clicks": 1200}),
    WindowView("2013-06-02"),
]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LINES_EVERY_SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_pipe_gets_a_line_for_each_window_that_changed() -> None:
    text = io.StringIO()
    with Shown("mixture", Console(file=text, force_terminal=False)) as shown:
        shown.show(VIEWS, "0 of 2")
        shown.show(VIEWS, "0 of 2")
        done = replace(VIEWS[0], run="success", tasks={"timer": "success", "joiner": "success"})
        shown.show([done, VIEWS[1]], "1 of 2")
    assert text.getvalue().splitlines() == [
        "2013-06-01  starting  0/2 tasks, timer running  clicks 1,200",
        "2013-06-01  done  2/2 tasks  clicks 1,200",
    ]


@pytest.mark.usefixtures("at_once")
def test_rows_that_come_in_are_said_while_their_window_trains() -> None:
    text = io.StringIO()
    training = replace(VIEWS[0], note="9,000 rows/s")
    with Shown("mixture", Console(file=text, force_terminal=False)) as shown:
        shown.show([training], "")
        shown.show([replace(training, rows={"clicks": 1300})], "")
    assert [line.count("1,300") for line in text.getvalue().splitlines()] == [0, 1]


def test_lines_come_every_few_seconds_and_the_last_ones_in_any_case() -> None:
    text = io.StringIO()
    with Shown("mixture", Console(file=text, force_terminal=False)) as shown:
        shown.show(VIEWS, "")
        done = replace(VIEWS[0], run="success")
        shown.show([done], "")
        assert len(text.getvalue().splitlines()) == 1
        shown.show([done], "", last=True)
    assert len(text.getvalue().splitlines()) == 2


@pytest.mark.parametrize("width", [80, 140])
def test_a_terminal_gets_a_block_with_every_window(width: int) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, color_system=None)
    with Shown("mixture", console) as shown:
        shown.show([replace(VIEWS[0], auc=0.7), VIEWS[1]], "0 of 2 windows done")
    seen = text.getvalue()
    words = ("mixture", "2013-06-01", "starting", "0/2", "timer", "1,200", "0.700", "2013-06-02")
    for word in (*words, "0 of 2 windows done"):
        assert word in seen
