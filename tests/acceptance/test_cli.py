"""The command line itself: version, help, usage errors, exit codes by remedy, --debug."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from support.manual import commands

from forebay.cli import COMMANDS, build_app, run
from forebay.errors import DataError, InfrastructureError, NotReadyError


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert "Exit codes: 0 done" in text
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", text, re.MULTILINE), command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "No such command 'chekc'"),
        (["check", "--outptu", "json"], "No such option: --outptu"),
        (["check", "--output", "xml"], "'xml' is not one of 'text', 'json'"),
        (["explain"], "Missing argument 'PIPELINE'"),
        (["explain", "a", "--windows", "0"], "greater than or equal to 1"),
    ],
)
def test_usage_errors_are_the_caller_s_to_change(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 1
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("error: ")
    assert message in streams.err
    assert "--help`)" in streams.err


def test_an_unknown_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pipelines").mkdir()
    arguments = ["explain", "ads", "--config", str(tmp_path)]
    assert run(arguments) == 1
    error = f"error: no pipeline 'ads' in {tmp_path}/pipelines. Declared: none\n"
    assert capsys.readouterr().err == error
    for debug in (["--debug", *arguments], [*arguments, "--debug"]):
        assert run(debug) == 1
        assert capsys.readouterr().err.startswith("Traceback")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotReadyError("wait"), 2),
        (DataError("bad"), 3),
        (InfrastructureError("down"), 4),
        (OSError(28, "No space left on device"), 4),
        (RuntimeError("a bug"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes_by_remedy(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failing() -> None:
        raise error

    monkeypatch.setattr("forebay.cli.build_app", failing)
    assert run(["check"]) == code
    text = capsys.readouterr().err
    assert text == "aborted\n" if code == 130 else text.startswith("error: ")
    assert "Traceback" not in text


def test_every_option_has_a_name_in_the_environment() -> None:
    root = typer.main.get_command(build_app())
    options = [
        (context.command_path, parameter)
        for command, context in commands(root, typer.Context(root))
        for parameter in command.params
        if parameter.param_type_name != "argument" and parameter.name != "help"
    ]
    assert len(options) > 80
    assert [each for each in options if not str(each[1].envvar).startswith("FOREBAY_")] == []
