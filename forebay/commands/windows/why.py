"""`forebay why PIPELINE WINDOW`: why a window is not done, in one answer."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat
from forebay.system.clock import utc_now
from forebay.system.output.counted import counted

if TYPE_CHECKING:
    from forebay.executors.stages.why import Why

_LAGS_SHOWN = 16
_TAKES_CONFIG = ("forebay run ", "forebay why ", "forebay forget ")


def why(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Say why a window is not done, and what to do next."""
    with working(f"looking at window {window}"):
        from forebay.datatasks.window_range import parse_window_or_warm_start
        from forebay.executors.arrow_start import start_arrow
        from forebay.executors.stages.target import LineTarget
        from forebay.executors.stages.why import why_window

        target = LineTarget.load(config, pipeline, line)
        start_arrow(target.kinds)
        asked = target.at(parse_window_or_warm_start(target.pipeline, window))
        found = _here(why_window(asked, utc_now), config)
    shown = Output(output)
    if shown.is_json:
        shown.json(found.model_dump())
        return
    shown.line(f"window {found.window}: {found.state}")
    shown.line(found.reason)
    behind = sorted(found.lags, key=lambda lag: (not lag.problem, -lag.count))
    for lag in behind[:_LAGS_SHOWN]:
        shown.line(lag.text)
    if len(behind) > _LAGS_SHOWN:
        more = counted(len(behind) - _LAGS_SHOWN, "more partition")
        shown.line(f"{more}: --output json shows all")
    if found.next:
        shown.line(f"next: {found.next}")
    if found.command:
        shown.exact(f"  {found.command}")


def _here(found: Why, config: Path) -> Why:
    """The answer with a command that reads the same declarations as this one did."""
    if config == arguments.DEFAULT_CONFIG or not found.command.startswith(_TAKES_CONFIG):
        return found
    command = f"{found.command} --config {shlex.quote(str(config))}"
    return found.model_copy(update={"command": command})
