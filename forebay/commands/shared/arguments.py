"""Arguments that commands share: a project, its pipelines, their windows and model lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from forebay.commands.shared import complete
from forebay.commands.shared.output import option
from forebay.config.specs.datasets import is_use_name
from forebay.home import paths
from forebay.system.names import (
    NAME_RULE,
    ONE_LINE_RULE,
    WINDOW_KEY_RULE,
    is_name,
    is_one_line,
    is_window_key,
    shown,
)

ConfigDir = Annotated[
    Path, option("--config", help="Folder with sources/ and pipelines/.", metavar="DIR")
]
DEFAULT_CONFIG = Path("config")

FirstWindow = Annotated[
    str,
    option(
        "--from",
        help="First window, for example 2026-03-01, or yesterday.",
        autocompletion=complete.windows,
    ),
]
LastWindow = Annotated[
    str, option("--to", help="Last window, included.", autocompletion=complete.windows)
]


def _refuse(parameter: typer.CallbackParam, value: str, rule: str) -> NoReturn:
    option = parameter.param_type_name == "option"
    hint = parameter.opts[0] if option else str(parameter.name).upper()
    raise typer.BadParameter(f"{shown(value)}: {rule}", param_hint=f"'{hint}'")


def name(parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Check a name: folders, jobs and rows are named after it."""
    if value is not None and not is_name(value):
        _refuse(parameter, value, NAME_RULE)
    return value


def use(parameter: typer.CallbackParam, value: str | None) -> str | None:
    if value is not None and not is_use_name(value):
        _refuse(parameter, value, f"{NAME_RULE}; SOURCE@STREAM if several streams read it")
    return value


def _window(parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Check a window key: folders are named after it. Commands check whether the window exists."""
    if value is not None and not is_window_key(value):
        _refuse(parameter, value, WINDOW_KEY_RULE)
    return value


def one_line(parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Check a text that is stored unchanged and never used in a path."""
    if value is not None and not is_one_line(value):
        _refuse(parameter, value, ONE_LINE_RULE)
    return value


def _argument(
    metavar: str,
    meaning: str,
    check: Callable[..., str | None],
    offered: Callable[[typer.Context, str], list[str]],
) -> Any:  # noqa: ANN401 - as typer declares it
    return typer.Argument(help=meaning, metavar=metavar, callback=check, autocompletion=offered)


PipelineName = Annotated[
    str, _argument("PIPELINE", "The pipeline's name.", name, complete.pipelines)
]
UseName = Annotated[
    str, _argument("SOURCE", "The source's name, or SOURCE@STREAM.", use, complete.sources)
]
_WINDOW = _argument("WINDOW", "For example 2026-03-01 or 2026-03-01T07.", _window, complete.windows)
WindowKey = Annotated[str, _WINDOW]
OneWindowKey = Annotated[str | None, _WINDOW]
LineName = Annotated[str, option("--line", help="The model line.", callback=name)]
OneWindow = Annotated[
    str | None,
    option("--window", help="Only this window.", callback=_window, autocompletion=complete.windows),
]
OneSource = Annotated[
    str | None,
    option(
        "--source",
        help="Only this source, or SOURCE@STREAM.",
        callback=use,
        autocompletion=complete.sources,
    ),
]
DEFAULT_LINE = paths.DEFAULT_LINE


def place_options(config: Path, line: str) -> list[str]:
    """Options that lead another command to the same YAML and line; none for the defaults."""
    config_option = [] if config == DEFAULT_CONFIG else ["--config", str(config)]
    return [*([] if line == DEFAULT_LINE else ["--line", line]), *config_option]


OneLine = Annotated[str | None, option("--line", help="Only this model line.", callback=name)]
OnePipeline = Annotated[
    str | None, _argument("PIPELINE", "Only this pipeline.", name, complete.pipelines)
]
