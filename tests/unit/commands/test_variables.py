"""Variables of the environment that stand for options: each means one thing in all commands."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import typer
from support.manual import commands

from forebay import cli
from forebay.cli import COMMANDS, build_app


def meanings() -> dict[str, set[str]]:
    """What is written for the value of each variable's options, by variable."""
    root = typer.main.get_command(build_app(COMMANDS))
    found: dict[str, set[str]] = defaultdict(set)
    for command, context in commands(root, typer.Context(root, info_name="forebay")):
        for each in command.params:
            if isinstance(each.envvar, str):
                names, _ = each.get_help_record(context)
                found[each.envvar].add(names)
    return found


def test_a_variable_is_one_option_everywhere() -> None:
    found = meanings()
    assert len(found) > 30
    assert {name: options for name, options in found.items() if len(options) > 1} == {}


def refused(
    name: str,
    value: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    monkeypatch.setenv(name, value)
    assert cli.run(arguments) == 1
    return capsys.readouterr().err


def test_init_refuses_the_variable_that_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shop"
    said = refused("FOREBAY_FROM", "parquet://lake", ["init", str(folder)], monkeypatch, capsys)
    assert said == (
        "error: FOREBAY_FROM='parquet://lake': FOREBAY_FROM is the first window of `run`; "
        "for this command set FOREBAY_INIT_FROM\n"
    )
    assert not folder.exists()
    new = refused("FOREBAY_INIT_FROM", "s3://lake", ["init", str(folder)], monkeypatch, capsys)
    assert "write parquet://PATH" in new
    monkeypatch.delenv("FOREBAY_INIT_FROM")
    monkeypatch.setenv("FOREBAY_FROM", "2026-03-01")
    assert cli.run(["init", str(folder)]) == 0


def test_score_refuses_the_variable_that_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["score", str(tmp_path), "--row", "[]"]
    said = refused("FOREBAY_ROWS", "rows.jsonl", arguments, monkeypatch, capsys)
    assert "FOREBAY_ROWS is how many rows `preview` shows; for this command set" in said
    assert said.endswith(" FOREBAY_ROWS_FILE\n")


def test_a_number_is_wanted_where_the_old_name_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["preview", "clicks", "--config", str(tmp_path)]
    said = refused("FOREBAY_ROWS", "rows.jsonl", arguments, monkeypatch, capsys)
    assert "'--rows' (env var: 'FOREBAY_ROWS'): Input should be a valid integer" in said
