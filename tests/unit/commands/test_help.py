"""The help of every command fits 80 columns; each variable means one option in all commands."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import typer
from support.manual import Command, commands

from forebay import cli
from forebay.cli import build_app

COLUMNS = 80


def groups(group: Command, context: typer.Context) -> list[tuple[Command, typer.Context]]:
    found = [(group, context)]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            found += groups(command, typer.Context(command, info_name=name, parent=context))
    return found


def root() -> tuple[Command, typer.Context]:
    command = typer.main.get_command(build_app())
    return command, typer.Context(command, info_name="forebay")


def paths() -> list[str]:
    shown = [context.command_path for _, context in (*groups(*root()), *commands(*root()))]
    return [path.removeprefix("forebay").strip() for path in shown if path != "forebay airflow"]


@pytest.mark.parametrize("path", paths())
def test_help_is_whole_at_80_columns(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    assert cli.run([*path.split(), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"Usage: forebay {path}".rstrip())
    assert [line for line in lines if len(line) > COLUMNS] == []
    assert [line for line in lines if line.endswith("...") and line[-4] not in "]}"] == [], "cut"


def test_what_a_list_says_of_a_command_is_short() -> None:
    long = {
        f"{context.command_path} {name}": text
        for group, context in groups(*root())
        for name in group.list_commands(context)
        if len(text := group.get_command(context, name).get_short_help_str(1_000)) > 55
    }
    assert long == {}


def test_a_variable_is_one_option_everywhere() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for command, context in commands(*root()):
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
