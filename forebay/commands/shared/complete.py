"""What Tab offers: names of pipelines and sources, windows, jobs. Read from files only.

A shell waits for it at every Tab, so nothing heavy is imported and no database is queried. Files
that cannot be read offer nothing: the command itself reports errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from forebay.system.names import is_name

VARIABLE = "_FOREBAY_COMPLETE"
_OFFERED_MAX = 100
_WINDOWS_MAX = 20_000
_FILE_BYTES_MAX = 1 << 20
_ENTRIES_MAX = 10_000


def pipelines(context: typer.Context, incomplete: str) -> list[str]:
    return _named(context, "pipelines", incomplete)


def sources(context: typer.Context, incomplete: str) -> list[str]:
    return _named(context, "sources", incomplete)


def windows(context: typer.Context, incomplete: str) -> list[str]:
    """The pipeline's newest windows that have ended, oldest first."""
    # While an option's value is completed, the arguments before it are not parsed yet.
    typed = (word for word in context.args if not word.startswith("-"))
    name = context.params.get("pipeline") or next(typed, "")
    if not is_name(name):
        return []
    path = _config(context) / "pipelines" / f"{name}.yaml"
    try:
        keys = [key for key in _keys(_dataset(path)) if key.startswith(incomplete)]
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return []  # the command says what is wrong with the file
    return list(reversed(keys[:_OFFERED_MAX]))


def job_ids(_context: typer.Context, incomplete: str) -> list[str]:
    """Ids of jobs that ran on this host."""
    home = Path(os.environ.get("FOREBAY_HOME") or ".forebay")
    return _entries(home / "jobs", incomplete, lambda path: path.name if path.is_dir() else "")


def _named(context: typer.Context, folder: str, incomplete: str) -> list[str]:
    return _entries(
        _config(context) / folder,
        incomplete,
        lambda path: path.stem if path.suffix in {".yaml", ".yml"} else "",
    )


def _entries(folder: Path, incomplete: str, name_of: Callable[[Path], str]) -> list[str]:
    try:
        names = {name_of(path) for path in islice(folder.iterdir(), _ENTRIES_MAX)}
    except OSError:
        return []
    return sorted(name for name in names if name and name.startswith(incomplete))[:_OFFERED_MAX]


def _config(context: typer.Context) -> Path:
    return Path(context.params.get("config") or os.environ.get("FOREBAY_CONFIG") or "config")


def _dataset(path: Path) -> Mapping[str, Any]:
    import yaml

    with path.open("rb") as file:
        text = file.read(_FILE_BYTES_MAX)
    try:
        return dict(yaml.safe_load(text)["dataset"])
    except yaml.YAMLError as error:
        raise ValueError(path) from error


def _keys(dataset: Mapping[str, Any]) -> Iterator[str]:
    """Keys of the windows that have ended, newest first."""
    from forebay.config.specs.windows import WindowGrid, WindowSize

    grid = WindowGrid(WindowSize(dataset.get("window", "1d")), dataset.get("timezone", "UTC"))
    first = grid.at(_instant(dataset["start"]))
    last = datetime.now(UTC)
    if dataset.get("end") is not None:
        last = min(last, _instant(dataset["end"]))
    window = grid.before(grid.at(last))
    for _ in range(_WINDOWS_MAX):
        if window.end <= first.start:
            return
        yield window.key
        window = grid.before(window)


def _instant(value: object) -> datetime:
    read = datetime.fromisoformat(str(value))
    return read if read.tzinfo else read.replace(tzinfo=UTC)
