"""Rows of a pipeline that could not be trained on, over all its model lines: `forebay dead`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from forebay.datatasks.plans.window_order import IN_ORDER
from forebay.errors import InfrastructureError
from forebay.executors.model_line.link import FileKind
from forebay.executors.model_line.rows import line_rows
from forebay.executors.model_line.rows.file_rows import stored_in
from forebay.executors.window_files.dead_letters import DEAD_FOLDER, DeadLetter, read_letters
from forebay.home.database.open import database_of
from forebay.home.database.tables import lines, link_files, links, windows
from forebay.home.paths import Home
from forebay.home.store.open import store_of

_LETTERS: FileKind = "dead_letters"


def pipeline_letters(
    home: Home, pipeline: str, window: str | None = None
) -> Iterator[tuple[str, DeadLetter]]:
    """Letters with their model lines: of all windows, or of one.

    First those of each window's newest link, line by line in order of windows. Then those of newer
    generations that have no link: this host trains them, or did not finish them.

    Raises:
        DataError: when stored letters are missing or damaged.
        InfrastructureError: when a window gets its link while its letters are read.
    """
    # Looked up first: letters that are linked after that are found among the stored ones.
    local = list(_local(home, pipeline))

    def look(rows: Connection) -> tuple[Sequence[Row[Any]], list[_Local]]:
        stored = _newest(rows, pipeline)
        return stored, [each for each in local if not _is_linked(rows, pipeline, each)]

    linked, unlinked = database_of(home).read(look)
    for each in linked:
        if window in {None, each.key}:
            for letter in read_letters(store_of(home).tree(stored_in(each))):
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


def _newest(connection: Connection, pipeline: str) -> Sequence[Row[Any]]:
    """The stored letters of every window's newest link, over all lines of a pipeline, in order."""
    rows = (
        select(lines.c.line, windows.c.key, link_files)
        .select_from(links)
        .join(lines, lines.c.id == links.c.line_id)
        .join(windows, windows.c.id == links.c.window_id)
        .join(link_files, link_files.c.link_id == links.c.id)
        .where(lines.c.pipeline == pipeline, link_files.c.kind == _LETTERS, line_rows.is_newest())
        .order_by(lines.c.line, *IN_ORDER)
    )
    return connection.execute(rows).all()


def _local(home: Home, pipeline: str) -> Iterator[_Local]:
    for dead in sorted(home.lines(pipeline).glob(f"*/*/g*/{DEAD_FOLDER}")):
        line, window, generation = dead.parts[-4:-1]
        number = generation.removeprefix("g")
        if number.isdecimal():
            yield _Local(line, window, int(number), dead.parent)


def _is_linked(rows: Connection, pipeline: str, one: _Local) -> bool:
    line = line_rows.line_id(rows, pipeline, one.line)
    newest = line_rows.newest_generation(rows, line, one.window)
    return newest is not None and newest >= one.generation


def _growing(one: _Local) -> Iterator[DeadLetter]:
    try:
        yield from read_letters(one.folder / DEAD_FOLDER)
        is_there = one.folder.is_dir()
    except FileNotFoundError:
        is_there = False
    if not is_there:
        raise InfrastructureError(
            f"window {one.window} of line {one.line!r} ended or started over while its dead "
            "letters were read: run the command again"
        )
