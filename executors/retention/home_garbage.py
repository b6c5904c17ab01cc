"""All garbage of a home: what of older windows is no longer kept, and what no row names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from sqlalchemy import Connection, Row, select

from forebay.config.load import Project
from forebay.executors.job.job_id import line_of
from forebay.executors.model_line.rows.file_rows import all_seals, forget_seal
from forebay.executors.retention.collect import Going, LineRetention
from forebay.executors.retention.job_folders import remove_unsubmitted, unsubmitted_folders
from forebay.executors.retention.training_folders import (
    TrainingFolder,
    is_spent,
    remove_spent_folders,
    spent_folders,
)
from forebay.home import garbage
from forebay.home.garbage import Garbage, only_collector
from forebay.home.open_database import database_of
from forebay.home.open_store import store_of
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.home.tables import lines, windows

_ALONE_SECONDS = 5.0


@dataclass(frozen=True)
class Found:
    """What is to be removed. notes: what is kept, and why."""

    windows: list[Going]
    unnamed: Garbage
    notes: list[str]


def find_garbage(home: Home, project: Project) -> Found:
    """What would be removed now; nothing is changed."""
    found = _of_windows(home, project, lambda line: iter(line.find()))
    left = [_folder(each) for each in spent_folders(home)]
    left += map(_seal, database_of(home).read(spent_seals))
    left += map(_job, unsubmitted_folders(home))
    return Found([*found, *left], garbage.collect(home, dry_run=True), _notes(home, project))


def remove_garbage(home: Home, project: Project) -> Found:
    """Remove it. Called again after a kill, it continues.

    Raises:
        InfrastructureError: when another process collects garbage, or when database, store or
            disk fail.
    """
    with only_collector(home, _ALONE_SECONDS):
        gone = list(_of_windows(home, project, LineRetention.remove))
        gone += [_folder(each) for each in remove_spent_folders(home)]
        gone += map(_seal, remove_spent_seals(home))
        gone += [_job(each) for each in unsubmitted_folders(home) if remove_unsubmitted(each)]
        return Found(gone, garbage.collect(home), _notes(home, project))


def _of_windows(
    home: Home, project: Project, act: Callable[[LineRetention], Iterator[Going]]
) -> Iterable[Going]:
    found: dict[Going, None] = {}  # each line lists the plans that all lines share
    for name, pipeline in project.pipelines.items():
        for line in _lines(home, name) or [DEFAULT_LINE]:
            found |= dict.fromkeys(act(LineRetention(home, pipeline, line)))
    return found


def _lines(home: Home, pipeline: str) -> list[str]:
    rows = select(lines.c.line).where(lines.c.pipeline == pipeline).order_by(lines.c.line)
    return database_of(home).read(lambda connection: list(connection.scalars(rows)))


def _notes(home: Home, project: Project) -> list[str]:
    """Notes on pipelines for which it is not declared how much is kept."""
    rows = select(windows.c.pipeline).distinct().order_by(windows.c.pipeline)
    known = database_of(home).read(lambda connection: list(connection.scalars(rows)))
    return [
        f"all windows of pipeline {name!r} are kept: it is not declared in {project.config_dir}, "
        f"or has errors (`forebay check --config {quote(str(project.config_dir))}`)"
        for name in known
        if name not in project.pipelines
    ]


def _folder(one: TrainingFolder) -> Going:
    place = str(one.path)
    return Going("training", one.pipeline, one.line, one.window, one.generation, place)


def _seal(row: Row[Any]) -> Going:
    return Going("seal", row.pipeline, row.line, row.key, row.generation, row.name, row.size_bytes)


def _job(folder: Path) -> Going:
    pipeline, line = line_of(folder.name)
    return Going("job", pipeline, line, None, None, str(folder))


def spent_seals(connection: Connection) -> list[Row[Any]]:
    """Their rows; see `all_seals`."""
    return [
        seal
        for seal in all_seals(connection)
        if is_spent(connection, seal.pipeline, seal.line, seal.key, seal.generation)
    ]


def remove_spent_seals(home: Home) -> list[Row[Any]]:
    """Forget them, then remove their bytes.

    Raises:
        InfrastructureError: when database or store fail.
    """

    def work(rows: Connection) -> list[Row[Any]]:
        found = spent_seals(rows)
        for seal in found:
            forget_seal(rows, seal.line_id, seal.window_id)
        return found

    database = database_of(home)
    if not database.read(spent_seals):
        return []  # without a write transaction, for which others would wait
    gone = database.transact(work)
    store_of(home).remove([seal.name for seal in gone])
    return gone
