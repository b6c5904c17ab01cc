"""`forebay dead ls|show`: rows that could not be learnt from, where they lie and why."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands import arguments
from forebay.commands.output import Form, Output, OutputFormat, option
from forebay.home.format import open_home

if TYPE_CHECKING:
    from forebay.executors.data_executor.dead_letters import DeadLetter

Window = Annotated[str | None, option("--window", help="Only this window.")]
Source = Annotated[str | None, option("--source", help="Only this source.")]


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(help="Dead letters.", no_args_is_help=True)
    group.command("ls")(ls)
    group.command("show")(show)
    app.add_typer(group, name="dead")


def _letters(pipeline: str, window: str | None, source: str | None) -> list[DeadLetter]:
    """Letters of the newest generation of each window."""
    from forebay.executors.data_executor.dead_letters import read_letters

    letters = list(read_letters(open_home().dead_letters(pipeline)))
    newest: dict[str, int] = {}
    for letter in letters:
        newest[letter.window] = max(letter.generation, newest.get(letter.window, 0))
    return [
        letter
        for letter in letters
        if letter.generation == newest[letter.window]
        and window in {None, letter.window}
        and source in {None, letter.source}
    ]


def ls(
    pipeline: arguments.PipelineName,
    window: Window = None,
    source: Source = None,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Count dead letters by window, source and reason."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for letter in _letters(pipeline, window, source):
        counts[letter.window, letter.source, letter.reason] += letter.rows
    rows = [
        {"window": key[0], "source": key[1], "reason": key[2], "rows": count}
        for key, count in sorted(counts.items())
    ]
    shown = Output(output)
    if not rows and not shown.is_json:
        shown.line(f"pipeline {pipeline!r} has no dead letters there")
        return
    shown.table(rows, ("window", "source", "reason", "rows"))


def show(
    pipeline: arguments.PipelineName,
    window: Window = None,
    source: Source = None,
    rows_max: Annotated[int, option("--rows-max", help="Show at most so many.", min=1)] = 100,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Show dead letters one by one: source, place in the storage, reason, and the row."""
    letters = _letters(pipeline, window, source)
    shown = Output(output)
    rows = [
        {
            "window": letter.window,
            "source": letter.source,
            **letter.location,
            "reason": letter.reason,
            "rows": letter.rows,
            "content": letter.row,
        }
        for letter in letters[:rows_max]
    ]
    if shown.is_json:
        shown.json(rows)
        return
    for row in rows:
        place = "  ".join(f"{name}={value}" for name, value in row.items() if name != "content")
        content = (
            json.dumps(row["content"]) if row["content"] is not None else "(it cannot be read)"
        )
        shown.line(f"{place}\n    {content}")
    if len(letters) > rows_max:
        shown.line(f"… and {len(letters) - rows_max} more (--rows-max)")
