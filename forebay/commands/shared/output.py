"""What all commands share: options with environment names, and output as text or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from forebay.system.output.table import TableColumn, table_lines
from forebay.system.output.text import columns as width_of_terminal
from forebay.system.output.text import fitted, printable

# Exit code of a command ended by Ctrl-C, as in shells.
INTERRUPTED = 130


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def option(*names: str, help: str, variable: str = "", **settings: Any) -> Any:  # noqa: A002, ANN401 - as typer names it
    """A typer option that can also be set as FOREBAY_<NAME> in the environment, or as `variable`.

    A variable has one meaning: options with the same name but different meanings have their own.
    """
    variable = variable or (
        "FOREBAY_" + names[0].split("/")[0].lstrip("-").replace("-", "_").upper()
    )
    return typer.Option(*names, help=help, envvar=variable, **settings)


Form = Annotated[OutputFormat, option("--output", help="Text for people or JSON for programs.")]


def is_terminal() -> bool:
    return sys.stdout.isatty()


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None if it is none."""
    return width_of_terminal() if is_terminal() else None


def note(text: str) -> None:
    """Print a line that is not part of the data, on standard error."""
    sys.stderr.write(fitted(printable(text), sys.stderr) + "\n")


class Output:
    """Prints a command's data in the chosen form, on standard output."""

    def __init__(self, form: OutputFormat) -> None:
        self.form = form

    @property
    def is_json(self) -> bool:
        return self.form is OutputFormat.JSON

    def json(self, value: object) -> None:
        """One JSON document; times in ISO form with Z."""
        sys.stdout.write(json.dumps(value, indent=2, default=_plain, ensure_ascii=False) + "\n")

    def line(self, text: str = "") -> None:
        """One line of text; on a terminal it is wrapped between words."""
        sys.stdout.write(fitted(printable(text), sys.stdout) + "\n")

    def clear(self) -> None:
        """Begin at the top of an empty terminal."""
        sys.stdout.write("\x1b[H\x1b[2J")

    def exact(self, text: str) -> None:
        """One line to be copied, or aligned with the line above: never wrapped."""
        sys.stdout.write(printable(text) + "\n")

    def table(
        self,
        rows: Iterable[Mapping[str, object]],
        columns: Sequence[str],
        below: Sequence[str] = (),
    ) -> None:
        """Rows as a table, or as a JSON list of objects with these keys.

        below: columns that are moved below their row first if the terminal is too narrow for all.
        """
        kept = [{column: row.get(column) for column in columns} for row in rows]
        if self.is_json:
            self.json(kept)
            return
        shown = [
            TableColumn(column, any(_is_number(row[column]) for row in kept), column in below)
            for column in columns
        ]
        cells = [[printable(cell(row[column])) for column in columns] for row in kept]
        for line in table_lines(shown, cells, terminal_width()):
            self.exact(line)


def cell(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(item) for item in value)
    if isinstance(value, datetime):
        return instant(value)
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def instant(value: datetime) -> str:
    """A time in UTC, written as briefly as possible."""
    if (value.hour, value.minute, value.second) == (0, 0, 0):
        return value.strftime("%Y-%m-%d")
    return value.strftime("%Y-%m-%dT%H:%MZ" if value.second == 0 else "%Y-%m-%dT%H:%M:%SZ")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
