"""What takes long in a real Airflow: all ways to ask for a line's windows, kills, real towers."""

from __future__ import annotations

import pytest
from support.airflow_cluster import Airflow
from support.airflow_endings import assert_last_lines, done, failed_at
from support.airflow_kill_story import TRAINING, KillStory
from support.airflow_line_story import LineStory, backfill_by_rest
from support.airflow_pipelines import ADS, NAN, WINDOW_SECONDS
from support.airflow_truth import assert_exact, generations, served
from support.file_watch import Reads

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def started(airflow: Airflow) -> None:
    """The line's first window, and what needs no watching."""
    airflow.trigger(ADS, ADS.window(0))
    airflow.backfill(NAN, 0, 1)


@pytest.fixture(scope="module")
def backfilled(airflow: Airflow) -> Reads:
    return backfill_by_rest(airflow)


class TestOneLine(LineStory):
    """Backfills by REST and from the command line, the same again, clears."""


def test_a_loss_that_is_not_a_number_is_red(airflow: Airflow) -> None:
    """With real towers; prices of the second window are infinite."""
    runs = airflow.ended(NAN, {0: "success", 1: "failed"}, WINDOW_SECONDS)
    assert airflow.states(runs[0]) == done(NAN)
    assert airflow.states(runs[1]) == failed_at(NAN, TRAINING)
    words = ("the loss of paradigm batch is not finite", NAN.key(1), "logs: ")
    assert_last_lines(airflow, runs[1], TRAINING, *words)
    assert served(airflow.project, NAN) == (NAN.key(0), 1)
    assert generations(airflow.project, NAN, 1) == []
    assert_exact(airflow.project, NAN, [0])


class TestKills(KillStory):
    """SIGKILL of an Airflow worker, the scheduler, the triggerer, a driver and a trainer."""
