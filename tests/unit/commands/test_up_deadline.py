"""How the deadline of `forebay up` may be written, and what it prints once Airflow runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay import cli
from forebay.commands.airflow.up import _print
from forebay.commands.shared.output import Output, OutputFormat


def test_a_deadline_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    for written in ("5", "29s", "2d", "0s"):
        assert cli.run(["up", "--config", str(tmp_path), "--component-deadline", written]) == 1
        error = capsys.readouterr().err
        assert "--component-deadline" in error
        unit = "a duration is a number and a unit"
        assert (unit if written == "5" else "must be between 30s and 1d") in error
        assert not (tmp_path / "home" / "airflow").exists()


def test_it_says_how_a_dag_is_unpaused(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"url": "http://127.0.0.1:1", "user": "admin", "password": "secret", "started": True}
    _print(Output(OutputFormat.TEXT), facts | {"sync_error": None, "failed": []})
    assert "new DAGs are paused: `forebay airflow dags unpause DAG`" in capsys.readouterr().out
