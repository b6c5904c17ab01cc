"""What `forebay up` and `forebay status` print once Airflow runs."""

from __future__ import annotations

import pytest

from forebay.commands.airflow import status, up
from forebay.commands.shared.output import Output, OutputFormat

FACTS = {"url": "http://127.0.0.1:1", "user": "admin", "sync_error": None}


def test_it_says_how_a_dag_is_unpaused(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"password": "secret", "started": True, "failed": []}
    up._print(Output(OutputFormat.TEXT), FACTS | facts)
    assert "new DAGs are paused: `forebay airflow dags unpause DAG`" in capsys.readouterr().out


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_it_says_what_ends_a_hang(capsys: pytest.CaptureFixture[str], state: str) -> None:
    facts = {"doing": None, "components": [], "dags": None, "problem": None, "logs": "logs"}
    status._print(Output(OutputFormat.TEXT), FACTS | facts | {"state": state, "healthy": False})
    assert ("hangs: `kill -9` its pid" in capsys.readouterr().out) is (state == "running")
