"""Folders in which this host trained windows, and that nobody continues: leftovers of dead jobs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from forebay.executors.job import job_rows
from forebay.executors.model_line.link import Parent
from forebay.executors.model_line.link_rows import line_id, link_id
from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.home.tables import job_windows, jobs, plans, windows
from forebay.system.files import writing


class TrainingFolder(NamedTuple):
    """Where a window is trained in one generation: see `Home.model`."""

    path: Path
    pipeline: str
    line: str
    window: str
    generation: int


def spent_folders(home: Home, pipeline: str = "*", line: str = "*") -> list[TrainingFolder]:
    """Folders whose window is linked or was planned anew, and that no job without an end names."""
    found = list(_folders(home, pipeline, line))
    if not found:
        return []
    return database_of(home).read(lambda rows: [each for each in found if _is_spent(rows, each)])


def remove_spent_folders(home: Home, pipeline: str = "*", line: str = "*") -> list[TrainingFolder]:
    """Remove such folders; whoever dies meanwhile leaves the rest to the next call.

    Raises:
        InfrastructureError: when the disk refuses.
    """
    found = spent_folders(home, pipeline, line)
    for each in found:
        with writing(each.path):
            shutil.rmtree(each.path)
    for window in _root(home, pipeline, line).glob(f"{pipeline}/{line}/*"):
        with suppress(OSError):  # it holds a generation, or is a file
            window.rmdir()
    return found


def _root(home: Home, pipeline: str, line: str) -> Path:
    return home.line(pipeline, line).parent.parent


def _folders(home: Home, pipeline: str, line: str) -> Iterator[TrainingFolder]:
    root = _root(home, pipeline, line)
    for path in sorted(root.glob(f"{pipeline}/{line}/*/g*")):
        of_pipeline, of_line, window, generation = path.relative_to(root).parts
        number = generation.removeprefix("g")
        if path.is_dir() and number.isdecimal():
            yield TrainingFolder(path, of_pipeline, of_line, window, int(number))


def _is_spent(connection: Connection, one: TrainingFolder) -> bool:
    wanted = (
        select(job_windows.c.job_row)
        .join(jobs, jobs.c.id == job_windows.c.job_row)
        .where(job_rows.of_line(one.pipeline, one.line), job_rows.is_unended())
        .where(job_windows.c.window == one.window, job_windows.c.generation == one.generation)
    )
    if connection.scalar(wanted.limit(1)) is not None:
        return False
    newest = (
        select(plans.c.generation)
        .join(windows, windows.c.id == plans.c.window_id)
        .where(windows.c.pipeline == one.pipeline, windows.c.key == one.window)
        .order_by(plans.c.generation.desc())
    )
    if connection.scalar(newest.limit(1)) != one.generation:
        return True
    line = line_id(connection, one.pipeline, one.line)
    name = Parent(window=one.window, generation=one.generation)
    return link_id(connection, line, name) is not None
