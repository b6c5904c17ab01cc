"""Where workers find state and interpreters; how errors become Airflow's; where links lead."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from forebay.errors import (
    ConfigError,
    DataError,
    FencedError,
    ForebayError,
    InfrastructureError,
    NotReadyError,
)
from forebay.operators.failures import failing_as_airflow
from forebay.operators.links import MetricsLink, TrainingLink, WindowBeforeLink
from forebay.operators.settings import home, interpreter
from forebay.operators.stages.data_executors import DataExecutorsOperator


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("FOREBAY_HOME", "AIRFLOW__FOREBAY__HOME", "AIRFLOW__FOREBAY__PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_state_lies_where_the_environment_or_airflow_says(
    unset: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"set FOREBAY_HOME .*or \[forebay\] home"):
        home()
    unset.setenv("AIRFLOW__FOREBAY__HOME", "/srv/forebay")
    assert str(home().root) == "/srv/forebay"
    unset.setenv("FOREBAY_HOME", "/srv/other")
    assert str(home().root) == "/srv/other"
    unset.setenv("FOREBAY_HOME", ".forebay")
    with pytest.raises(ConfigError, match=r"'\.forebay', which is a different folder for each"):
        home()
    (tmp_path / "jobs" / "ads").mkdir(parents=True)
    unset.setenv("FOREBAY_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"has lost its home\.json .*holds jobs: restore it"):
        home()


def test_the_interpreter_of_stages(unset: pytest.MonkeyPatch) -> None:
    assert interpreter(None) == sys.executable
    unset.setenv("AIRFLOW__FOREBAY__PYTHON", "/srv/venv/bin/python")
    assert interpreter(None) == "/srv/venv/bin/python"
    assert interpreter("/mine/python") == "/mine/python"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        *((each("bad"), AirflowFailException) for each in (ConfigError, NotReadyError, DataError)),
        (InfrastructureError("gone"), AirflowException),
        (FencedError("newer"), AirflowException),
    ],
)
def test_only_infrastructure_is_tried_again(error: ForebayError, kind: type[Exception]) -> None:
    with pytest.raises(AirflowException) as raised, failing_as_airflow():
        raise error
    assert type(raised.value) is kind
    assert str(raised.value) == str(error)
    assert raised.value.__suppress_context__


def test_links_lead_to_pages_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/base/")
    operator = DataExecutorsOperator(task_id="data_executors", pipeline="ads", config="/config")
    key: Any = SimpleNamespace(dag_id="ads", run_id="manual__2026-03-01T00:00:00+00:00")
    page = "https://airflow.example/base/dags/ads/runs"
    run = f"{page}/manual__2026-03-01T00%3A00%3A00%2B00%3A00"
    assert TrainingLink().get_link(operator, ti_key=key) == f"{run}/tasks/training_executors"
    assert MetricsLink().get_link(operator, ti_key=key) == f"{run}/tasks/evaluate/xcom"
    assert WindowBeforeLink().get_link(operator, ti_key=key) == page
    operator.run_before = "backfill__1"
    assert WindowBeforeLink().get_link(operator, ti_key=key) == f"{page}/backfill__1"
