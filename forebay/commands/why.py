"""`forebay why PIPELINE WINDOW`: why a window is not done, in one answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from forebay.commands.output import (
    DEFAULT_CONFIG,
    DEFAULT_LINE,
    ConfigDir,
    Form,
    LineName,
    Output,
    OutputFormat,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("why")(why)


def why(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    window: Annotated[str, typer.Argument(help="For example 2026-03-01 or 2026-03-01T07.")],
    config: ConfigDir = DEFAULT_CONFIG,
    line: LineName = DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Say why a window is not done, and what to do next."""
    from forebay.datatasks.window_range import parse_window_or_warm_start
    from forebay.executors.stages.target import LineTarget
    from forebay.executors.stages.why import why_window

    target = LineTarget.load(config, pipeline, line)
    found = why_window(
        target.at(parse_window_or_warm_start(target.pipeline, window)), lambda: datetime.now(UTC)
    )
    shown = Output(output)
    if shown.is_json:
        shown.json(found.model_dump())
        return
    shown.line(f"window {found.window}: {found.state}")
    shown.line(found.reason)
    if found.next:
        shown.line(f"next: {found.next}")
