"""`forebay check` of nothing at all, and if the rows of a pipeline cannot be sampled."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.projects import ads_project

from forebay.cli import run
from forebay.config.load import Project
from forebay.errors import ConfigError, InfrastructureError, MissingExtraError
from forebay.executors.advice import check as advice
from forebay.executors.advice.check import DataCheck
from forebay.system import extras


def test_a_storage_that_fails_while_it_is_sampled_is_named_with_its_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(project: Project, name: str) -> DataCheck:
        raise InfrastructureError(f"the broker of {len(project.sources)} sources is away")

    monkeypatch.setattr(advice, "check_data", away)
    ads_project(tmp_path, rows=50)
    code = run(["check", "--connect", "--config", str(tmp_path / "config")])
    assert code == InfrastructureError.exit_code
    wanted = "error: pipeline 'ads', a sample of its rows: the broker of 2 sources is away"
    assert wanted in capsys.readouterr().err


def test_a_folder_without_declarations_is_not_green(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sources").mkdir()
    assert run(["check", "--config", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{tmp_path}:1:1: nothing is declared here: files belong in ")
    assert shown.err == "0 sources, 0 pipelines: 1 problem\n"


def test_exit_codes_are_those_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1: change your YAML, or install what is missing; 3: the data is bad; 4: try again."""
    project = ads_project(tmp_path, rows=50)
    config = str(tmp_path / "config")
    file = min(project.files.rglob("*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    assert run(["check", "--connect", "--config", config]) == 3
    assert "repair or remove the file" in capsys.readouterr().out
    source = tmp_path / "config/sources/history.yaml"
    source.write_text(source.read_text().replace("price: float", "price: bool"))
    assert run(["check", "--connect", "--config", config]) == 1
    file.write_bytes(whole)
    assert run(["preview", "history", "--config", config]) == 1
    assert "cannot be read as bool" in capsys.readouterr().out

    monkeypatch.setattr(extras, "missing_modules", lambda name: [f"{name}_library"])
    with pytest.raises(MissingExtraError, match="pip install 'forebay\\[kafka\\]'"):
        extras.require_extra("kafka")
    assert MissingExtraError.exit_code == ConfigError.exit_code == 1
