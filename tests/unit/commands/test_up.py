"""What `forebay up` prints once Airflow runs."""

from __future__ import annotations

import pytest

from forebay.commands.airflow.up import _print
from forebay.commands.shared.output import Output, OutputFormat


def test_it_says_how_a_dag_is_unpaused(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"url": "http://127.0.0.1:1", "user": "admin", "password": "secret", "started": True}
    _print(Output(OutputFormat.TEXT), facts | {"sync_error": None, "failed": []})
    assert "new DAGs are paused: `forebay airflow dags unpause DAG`" in capsys.readouterr().out
