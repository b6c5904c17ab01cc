"""What takes long in a real Airflow: all ways to ask for a line's windows, mended data, kills."""

from __future__ import annotations

import pytest
from support.airflow_cluster import Airflow, now
from support.airflow_data import write_torn_day
from support.airflow_endings import assert_last_lines, done, failed_at
from support.airflow_kill_story import TRAINING, KillStory
from support.airflow_line_story import LineStory, backfill_by_rest
from support.airflow_pipelines import ADS, NAN, TORN, WINDOW_SECONDS
from support.airflow_plugin import Timed
from support.airflow_truth import assert_exact, assert_in_order, generations, served
from support.file_watch import Reads

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def started(airflow: Airflow) -> None:
    """The line's first window, and what needs no watching."""
    airflow.trigger(ADS, ADS.window(0))
    airflow.backfill(NAN, 0, 1)
    airflow.backfill(TORN, 0, 4)


@pytest.fixture(scope="module")
def backfilled(airflow: Airflow) -> Reads:
    return backfill_by_rest(airflow)


class TestOneLine(LineStory):
    """Backfills by REST and from the command line, the same again, clears."""


def test_a_loss_that_is_not_a_number_is_red(airflow: Airflow) -> None:
    """With real towers; the window behind it is not trained without it."""
    runs = airflow.ended(NAN, dict.fromkeys((0, 1), "failed"), WINDOW_SECONDS)
    assert airflow.states(runs[0]) == failed_at(NAN, TRAINING)
    words = ("the loss of paradigm batch is not finite", NAN.key(0), "logs: ")
    assert_last_lines(airflow, runs[0], TRAINING, *words)
    assert airflow.states(runs[1]) == failed_at(NAN, "data_executors")
    assert_last_lines(airflow, runs[1], "data_executors", "comes before it, failed")
    assert [generations(airflow.project, NAN, number) for number in (0, 1)] == [[], []]


def test_mended_data_and_one_backfill_of_what_failed(airflow: Airflow, timed: Timed) -> None:
    airflow.ended(TORN, {0: "success", **dict.fromkeys(range(1, 5), "failed")}, WINDOW_SECONDS)
    for number in (1, 2):
        write_torn_day(airflow.project.root, number)
    with timed("backfill of 3 windows that had failed, once their data was mended"):
        since = now()
        airflow.backfill(TORN, 0, 3, "failed")
        runs = airflow.ended(TORN, dict.fromkeys(range(1, 4), "success"), WINDOW_SECONDS, since)
    assert all(airflow.states(run) == done(TORN) for run in runs.values())
    assert generations(airflow.project, TORN, 0) == [1], "the window that was trained was not to be"
    assert_exact(airflow.project, TORN, range(4))
    assert_in_order(airflow.project, TORN, range(4))
    assert served(airflow.project, TORN)[0] == TORN.key(3)


class TestKills(KillStory):
    """SIGKILL of an Airflow worker, the scheduler, the triggerer, a driver and a trainer."""
