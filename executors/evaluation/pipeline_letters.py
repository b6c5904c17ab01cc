"""The dead letters of a pipeline, over all its model lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection

from forebay.errors import InfrastructureError
from forebay.executors.model_line import link_rows
from forebay.executors.model_line.link_rows import NewestFile
from forebay.executors.window_files.dead_letters import (
    DEAD_FOLDER,
    DeadLetter,
    gathered_letters,
    read_letters,
)
from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.home.store import store_of


def pipeline_letters(
    home: Home, pipeline: str, window: str | None = None
) -> Iterator[tuple[str, DeadLetter]]:
    """Letters with their model lines: of all windows, or of one.

    First those of each window's newest link, line by line in order of windows. Then those of newer
    generations that have no link: this host trains them, or did not come to their end.

    Raises:
        DataError: when stored letters are missing or damaged.
        InfrastructureError: when a window gets its link while its letters are read.
    """
    # Looked for first: what is linked since then is among the stored ones.
    local = list(_local(home, pipeline))

    def look(rows: Connection) -> tuple[list[NewestFile], list[_Local]]:
        stored = link_rows.newest_files(rows, pipeline, "dead_letters")
        return stored, [each for each in local if not _is_linked(rows, pipeline, each)]

    linked, unlinked = database_of(home).read(look)
    for each in linked:
        if window in {None, each.name.window}:
            for letter in gathered_letters(store_of(home).tree(each.stored)):
                yield each.line, letter
    for here in unlinked:
        if window in {None, here.window}:
            for letter in _growing(here):
                yield here.line, letter


class _Local(NamedTuple):
    line: str
    window: str
    generation: int
    folder: Path


def _local(home: Home, pipeline: str) -> Iterator[_Local]:
    for dead in sorted(home.lines(pipeline).glob(f"*/*/g*/{DEAD_FOLDER}")):
        line, window, generation = dead.parts[-4:-1]
        yield _Local(line, window, int(generation.removeprefix("g")), dead.parent)


def _is_linked(rows: Connection, pipeline: str, one: _Local) -> bool:
    """Whether its line has a link of this generation or a newer one."""
    newest = link_rows.link_of(rows, link_rows.line_id(rows, pipeline, one.line), one.window)
    return newest is not None and newest.generation >= one.generation


def _growing(one: _Local) -> Iterator[DeadLetter]:
    try:
        yield from read_letters(one.folder)
        is_there = one.folder.is_dir()
    except FileNotFoundError:
        is_there = False
    if not is_there:
        raise InfrastructureError(
            f"window {one.window} of line {one.line!r} was trained to its end, or begun anew, "
            "while its dead letters were read: ask again"
        )
