"""Folders in which this host trained windows and that no job continues: leftovers of dead jobs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from forebay.executors.job import job_rows
from forebay.executors.model_line.link import Parent
from forebay.executors.model_line.rows.line_rows import line_id, link_id
from forebay.home.open_database import database_of
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
    """Folders whose window is linked or was planned again, and that no unended job names."""
    found = list(_folders(home, pipeline, line))
    if not found:
        return []

    def work(rows: Connection) -> list[TrainingFolder]:
        return [
            each
            for each in found
            if is_spent(rows, each.pipeline, each.line, each.window, each.generation)
        ]

    return database_of(home).read(work)


def remove_spent_folders(home: Home, pipeline: str = "*", line: str = "*") -> list[TrainingFolder]:
    """Remove such folders; after a kill, the next call removes the rest.

    Raises:
        InfrastructureError: when the disk fails.
    """
    found = spent_folders(home, pipeline, line)
    for each in found:
        with writing(each.path):
            shutil.rmtree(each.path)
    for window in home.training.glob(f"{pipeline}/{line}/*"):
        with suppress(OSError):  # it holds a generation, or is a file
            window.rmdir()
    return found


def _folders(home: Home, pipeline: str, line: str) -> Iterator[TrainingFolder]:
    root = home.training
    for path in sorted(root.glob(f"{pipeline}/{line}/*/g*")):
        of_pipeline, of_line, window, generation = path.relative_to(root).parts
        number = generation.removeprefix("g")
        if path.is_dir() and number.isdecimal():
            yield TrainingFolder(path, of_pipeline, of_line, window, int(number))


def is_spent(
    connection: Connection, pipeline: str, line: str, window: str, generation: int
) -> bool:
    """Whether a window is linked or was planned again, and no unended job names it."""
    wanted = (
        select(job_windows.c.job_row)
        .join(jobs, jobs.c.id == job_windows.c.job_row)
        .where(job_rows.of_line(pipeline, line), job_rows.is_unended())
        .where(job_windows.c.window == window, job_windows.c.generation == generation)
    )
    if connection.scalar(wanted.limit(1)) is not None:
        return False
    newest = (
        select(plans.c.generation)
        .join(windows, windows.c.id == plans.c.window_id)
        .where(windows.c.pipeline == pipeline, windows.c.key == window)
        .where(plans.c.proposed.is_(False))
        .order_by(plans.c.generation.desc())
    )
    if connection.scalar(newest.limit(1)) != generation:
        return True
    of_line = line_id(connection, pipeline, line)
    return link_id(connection, of_line, Parent(window=window, generation=generation)) is not None
