"""`forebay dead ls|show`: rows that could not be trained on, where they are and why."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.known_pipeline import require_known
from forebay.commands.shared.output import Form, Output, OutputFormat, option
from forebay.config.specs.datasets import source_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forebay.executors.window_files.dead_letters import DeadLetter

_COLUMNS = ("model_line", "window", "generation", "source", "reason", "rows")
group = typer.Typer(help="Rows that could not be trained on.", no_args_is_help=True)


def _letters(
    pipeline: str, window: str | None, source: str | None
) -> Iterator[tuple[str, DeadLetter]]:
    from forebay.executors.evaluation.pipeline_letters import pipeline_letters
    from forebay.home.database.format import open_home

    for line, letter in pipeline_letters(open_home(), pipeline, window):
        if source in {None, letter.source, source_of(letter.source)}:
            yield line, letter


@group.command()
def ls(
    pipeline: arguments.PipelineName,
    window: arguments.OneWindow = None,
    source: arguments.OneSource = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Count dead letters by window, source and reason.

    Includes trained windows, and windows that this host is training or could not train.
    """
    counts: Counter[tuple[str, str, int, str, str]] = Counter()
    for line, letter in _letters(pipeline, window, source):
        key = line, letter.window, letter.generation, letter.source, letter.reason
        counts[key] += letter.rows
    rows = [
        dict(zip(_COLUMNS, (*key, count), strict=True)) for key, count in sorted(counts.items())
    ]
    if not rows:
        _require_known(pipeline, config)
    shown = Output(output)
    if not rows and not shown.is_json:
        shown.line(_none(pipeline, window, source))
        return
    shown.table(rows, _COLUMNS)


@group.command()
def show(
    pipeline: arguments.PipelineName,
    window: arguments.OneWindow = None,
    source: arguments.OneSource = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    rows_max: Annotated[int, option("--rows-max", help="Show at most this many.", min=1)] = 100,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Show dead letters one by one.

    Each is shown with its source, its position in the storage, the reason, and the row.
    """
    letters = _letters(pipeline, window, source)
    shown = Output(output)
    rows = [
        {
            "model_line": line,
            "window": letter.window,
            "generation": letter.generation,
            "source": letter.source,
            **letter.location,
            "reason": letter.reason,
            "rows": letter.rows,
            "content": letter.row if letter.location else "(not kept)",
        }
        for line, letter in islice(letters, rows_max)
    ]
    if not rows:
        _require_known(pipeline, config)
    if shown.is_json:
        shown.json(rows)
        return
    if not rows:
        shown.line(_none(pipeline, window, source))
    for row in rows:
        place = "  ".join(f"{name}={value}" for name, value in row.items() if name != "content")
        content = (
            json.dumps(row["content"]) if row["content"] is not None else "(it cannot be read)"
        )
        shown.line(f"{place}\n    {content}")
    if left := sum(1 for _ in letters):
        shown.line(f"… and {left} more (--rows-max)")


def _require_known(pipeline: str, config: Path) -> None:
    from forebay.home.database.format import open_home

    require_known(open_home(), pipeline, config)


def _none(pipeline: str, window: str | None, source: str | None) -> str:
    of_window = f" of window {window}" if window else ""
    of_source = f" from source {source}" if source else ""
    return f"pipeline {pipeline!r} has no dead letters{of_window}{of_source}"
