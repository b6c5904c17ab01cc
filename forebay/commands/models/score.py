"""`forebay score`: probabilities of rows from an exported model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, option
from forebay.errors import UsageError


def score(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="An exported model's folder.")],
    row: Annotated[str | None, option("--row", help="One row as a JSON object.")] = None,
    rows: Annotated[
        Path | None,
        option(
            "--rows",
            help="A file with one JSON object per line.",
            metavar="FILE",
            variable="FOREBAY_ROWS_FILE",
        ),
    ] = None,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Score rows with an exported model. A row has every column that the model reads.

    null means an unknown value. Timestamps are written as 2013-06-01T07:00:00Z.
    """
    with working("loading the model, which needs TensorFlow"):
        # Imported here: it imports numpy, which `forebay --help` does not need.
        from forebay.mixture.serving.scoring import ServedModel
        from forebay.mixture.tensorflow_start import LOG_LEVEL

        if getattr(context.obj, "debug", False):
            os.environ.setdefault(LOG_LEVEL, "0")
        scored = ServedModel(model).score(_rows(row, rows))
    Output(output).table(scored, list(scored[0]) if scored else ["score"])


def _rows(row: str | None, path: Path | None) -> list[dict[str, object]]:
    if (row is None) == (path is None):
        raise UsageError("give either --row JSON or --rows FILE")
    if row is not None:
        return [_object(row, "--row")]
    if path is None or not path.is_file():
        raise UsageError(f"--rows: no such file: {path}")
    lines = path.read_text().splitlines()
    return [_object(line, f"{path}:{n}") for n, line in enumerate(lines, start=1) if line.strip()]


def _object(text: str, place: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{place}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{place}: a row must be a JSON object, not {type(value).__name__}")
    return value
