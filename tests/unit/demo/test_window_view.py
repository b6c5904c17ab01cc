"""Windows while they run, on a terminal and elsewhere: Airflow's states of them in words."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from examples.demo.airflow import live
from examples.demo.airflow.live import Shown
from examples.demo.airflow.window_view import WindowView

TASKS = (
    *("timer", "sources.flights_table", "sources.departures", "joiner", "sink"),
    *("data_executors", "training_executors", "evaluate", "publish"),
)


def view(**given: str) -> WindowView:
    """Every task up to the first given one has succeeded; those behind it are nowhere yet."""
    named = {name.replace("__", "."): state for name, state in given.items()}
    first = min(TASKS.index(name) for name in named)
    earlier = {name: "success" if n < first else "" for n, name in enumerate(TASKS)}
    return WindowView("2013-06-01", "running", earlier | named)


@pytest.mark.parametrize(
    ("seen", "doing"),
    [
        (WindowView("2013-06-01"), "to come"),
        (WindowView("2013-06-01", "queued"), "queued"),
        (WindowView("2013-06-01", "success"), "done"),
        (view(timer="queued"), "starting"),
        (view(sources__flights_table="running"), "listing"),
        (view(sources__flights_table="deferred"), "waits for data"),
        (view(joiner="scheduled"), "planning"),
        (view(sink="running"), "planning"),
        (view(data_executors="deferred"), "waits its turn"),
        (view(data_executors="running"), "starting a job"),
        (view(training_executors="up_for_retry"), "training"),
        (view(evaluate="running"), "evaluating"),
        (view(publish="running"), "publishing"),
        (view(evaluate="failed", publish="upstream_failed"), "failed"),
    ],
)
def test_what_a_run_is_doing(seen: WindowView, doing: str) -> None:
    assert seen.doing == doing


def test_tasks_at_work_are_named_in_the_order_of_the_dag_and_lines_are_plain() -> None:
    mixed = view(sources__flights_table="running", sources__departures="deferred")
    assert (mixed.ended, mixed.at_work) == ("1/9", "1 source running, 1 source deferred")
    later = view(training_executors="running")
    assert (later.ended, later.at_work) == ("6/9", "training_executors running")
    both = view(sources__flights_table="running", sources__departures="running")
    assert both.at_work == "2 sources running"
    failed = view(training_executors="failed", evaluate="upstream_failed")
    assert failed.failed_task == "training_executors"
    rows = {"flights_table": 1612, "departures": 702}
    done = WindowView("2013-06-03", "success", dict.fromkeys(TASKS, "success"), rows, auc=0.7912)
    assert done.line("mixture") == (
        "2013-06-03  done  9/9 tasks  flights_table 1,612  departures 702  fresh AUC mixture 0.791"
    )


VIEWS = [
    WindowView("2013-06-01", "running", {"timer": "running", "joiner": ""}, {"clicks": 1200}),
    WindowView("2013-06-02"),
]


def seen(*shows: list[WindowView], last: bool = False) -> list[str]:
    text = io.StringIO()
    with Shown("mixture", Console(file=text, force_terminal=False)) as shown:
        for views in shows:
            shown.show(views, "0 of 2", last=last and views is shows[-1])
    return text.getvalue().splitlines()


def test_a_pipe_gets_a_line_for_each_window_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LINES_EVERY_SECONDS", 0.0)
    done = replace(VIEWS[0], run="success", tasks={"timer": "success", "joiner": "success"})
    assert seen(VIEWS, VIEWS, [done, VIEWS[1]]) == [
        "2013-06-01  starting  0/2 tasks, timer running  clicks 1,200",
        "2013-06-01  done  2/2 tasks  clicks 1,200",
    ]
    training = replace(VIEWS[0], note="9,000 rows/s")
    lines = seen([training], [replace(training, rows={"clicks": 1300})])
    assert [line.count("1,300") for line in lines] == [0, 1]


def test_lines_come_every_few_seconds_and_the_last_ones_in_any_case() -> None:
    shows = VIEWS, [replace(VIEWS[0], run="success")]
    assert (len(seen(*shows)), len(seen(*shows, last=True))) == (1, 2)


@pytest.mark.parametrize("width", [80, 140])
def test_a_terminal_gets_a_block_with_every_window(width: int) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, color_system=None)
    with Shown("mixture", console) as shown:
        shown.show([replace(VIEWS[0], auc=0.7), VIEWS[1]], "0 of 2 windows done")
    words = ("mixture", "2013-06-01", "starting", "0/2", "timer", "1,200", "0.700", "2013-06-02")
    assert [word for word in (*words, "0 of 2 windows done") if word not in text.getvalue()] == []
