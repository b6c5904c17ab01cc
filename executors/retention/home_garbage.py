"""All garbage of a home: what of older windows is no longer kept, and what no row names."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from forebay.config.load import Project
from forebay.executors.job import job_rows
from forebay.executors.model_line.link import Parent
from forebay.executors.model_line.rows.file_rows import all_seals, forget_seal
from forebay.executors.model_line.rows.line_rows import line_id, link_id
from forebay.executors.retention.collect import Going, LineRetention
from forebay.executors.retention.job_folders import remove_unsubmitted, unsubmitted_folders
from forebay.home.database.open import database_of
from forebay.home.database.tables import job_windows, jobs, lines, plans, windows
from forebay.home.job_id import line_of
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.home.store import garbage
from forebay.home.store.garbage import Garbage, only_collector
from forebay.home.store.open import store_of
from forebay.system.files.durable import writing


class TrainingFolder(NamedTuple):
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
    return database_of(home).read(lambda rows: [one for one in found if is_spent(rows, *one[1:])])


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


_ALONE_SECONDS = 5.0


@dataclass(frozen=True)
class Found:
    """What is to be removed. notes: what is kept, and why."""

    windows: list[Going]
    unnamed: Garbage
    notes: list[str]


def find_garbage(home: Home, project: Project) -> Found:
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
