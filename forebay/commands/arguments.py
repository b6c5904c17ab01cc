"""What commands are asked about: a project, a pipeline of it, its windows, its model line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from forebay.commands.output import option
from forebay.home import paths

ConfigDir = Annotated[
    Path, option("--config", help="Folder with sources/ and pipelines/.", metavar="DIR")
]
DEFAULT_CONFIG = Path("config")

PipelineName = Annotated[str, typer.Argument(help="The pipeline's name.")]
SourceName = Annotated[str, typer.Argument(help="The source's name.")]
WindowKey = Annotated[str, typer.Argument(help="For example 2026-03-01 or 2026-03-01T07.")]
FirstWindow = Annotated[str, option("--from", help="First window, for example 2026-03-01.")]
LastWindow = Annotated[str, option("--to", help="Last window, included.")]


def _line_name(value: str) -> str:
    """Folders and jobs are named after it."""
    # Imported here: pydantic comes with it, which help and most commands do not need.
    from forebay.config.base import NAME_PATTERN

    if not re.match(NAME_PATTERN, value):
        raise typer.BadParameter(
            f"{value!r}: a name is a letter and up to 62 letters, digits, _ or -",
            param_hint="'--line'",
        )
    return value


LineName = Annotated[str, option("--line", help="The model line.", callback=_line_name)]
DEFAULT_LINE = paths.DEFAULT_LINE
