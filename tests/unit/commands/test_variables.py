"""Variables of the environment that stand for options: each means one thing in all commands."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import typer
from support.manual import commands

from forebay import cli
from forebay.cli import build_app


def test_a_variable_is_one_option_everywhere() -> None:
    root = typer.main.get_command(build_app())
    found: dict[str, set[str]] = defaultdict(set)
    for command, context in commands(root, typer.Context(root, info_name="forebay")):
        for each in command.params:
            if isinstance(each.envvar, str):
                names, _ = each.get_help_record(context)
                found[each.envvar].add(names)
    assert len(found) > 30
    assert {name: options for name, options in found.items() if len(options) > 1} == {}


def test_a_refused_value_names_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOREBAY_ROWS", "rows.jsonl")
    assert cli.run(["preview", "clicks", "--config", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "'--rows' (env var: 'FOREBAY_ROWS'): Input should be a valid integer" in said
