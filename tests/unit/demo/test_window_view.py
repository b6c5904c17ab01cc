"""Airflow's states of a window in words."""

from __future__ import annotations

import pytest

from examples.demo.airflow.window_view import WindowView

TASKS = (
    *("timer", "sources.flights_table", "sources.departures", "joiner", "sink"),
    *("data_executors", "training_executors", "evaluate", "publish"),
)


def states(**given: str) -> dict[str, str]:
    """Every task up to the first given one has succeeded; those behind it are nowhere yet."""
    named = {name.replace("__", "."): state for name, state in given.items()}
    first = min(TASKS.index(name) for name in named)
    return {
        name: named.get(name, "success" if number < first else "")
        for number, name in enumerate(TASKS)
    }


@pytest.mark.parametrize(
    ("tasks", "doing"),
    [
        (states(timer="queued"), "starting"),
        (states(sources__flights_table="running"), "listing"),
        (states(sources__flights_table="deferred"), "waits for data"),
        (states(joiner="scheduled"), "planning"),
        (states(sink="running"), "planning"),
        (states(data_executors="deferred"), "waits its turn"),
        (states(data_executors="running"), "starting a job"),
        (states(training_executors="running"), "training"),
        (states(training_executors="up_for_retry"), "training"),
        (states(evaluate="running"), "evaluating"),
        (states(publish="running"), "publishing"),
        (states(evaluate="failed", publish="upstream_failed"), "failed"),
    ],
)
def test_what_a_run_is_doing(tasks: dict[str, str], doing: str) -> None:
    assert WindowView("2013-06-01", "running", tasks).doing == doing


@pytest.mark.parametrize(
    ("run", "doing"), [("", "to come"), ("queued", "queued"), ("success", "done")]
)
def test_runs_without_a_task_at_work(run: str, doing: str) -> None:
    assert WindowView("2013-06-01", run).doing == doing


def test_tasks_at_work_are_named_in_the_order_of_the_dag() -> None:
    tasks = states(sources__flights_table="running", sources__departures="deferred")
    view = WindowView("2013-06-01", "running", tasks)
    assert (view.ended, view.at_work) == ("1/9", "1 source running, 1 source deferred")
    later = WindowView("2013-06-01", "running", states(training_executors="running"))
    assert (later.ended, later.at_work) == ("6/9", "training_executors running")
    both = dict.fromkeys(("sources.flights_table", "sources.departures"), "running")
    assert WindowView("2013-06-01", "running", both).at_work == "2 sources running"


def test_a_failed_task_is_found_among_those_that_never_ran() -> None:
    tasks = states(training_executors="failed", evaluate="upstream_failed")
    assert WindowView("2013-06-01", "failed", tasks).failed_task == "training_executors"


def test_a_plain_line() -> None:
    rows = {"flights_table": 1612, "departures": 702}
    view = WindowView("2013-06-03", "success", dict.fromkeys(TASKS, "success"), rows, auc=0.7912)
    assert view.line("mixture") == (
        "2013-06-03  done  9/9 tasks  flights_table 1,612  departures 702  fresh AUC mixture 0.791"
    )
