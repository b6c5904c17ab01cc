"""What has to be true of a home at any moment, and what once everything has finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sqlalchemy import Connection, select

from forebay.executors.job.stored_jobs import jobs_of
from forebay.executors.model_line.link import Link
from forebay.executors.stages.target import LineTarget
from forebay.executors.window_files.dead_letters import read_letters
from forebay.home.database.open import database_of
from forebay.home.database.tables import STORED
from forebay.home.store.base import WRITING_NAME, Stored, is_tree
from forebay.home.store.open import store_of
from support import independent
from support.whole_life.life import FIRST, SECOND, THIRD

# By window: sums of its rows that have a label, by source, and how many rows have none.
Counted = Mapping[str, tuple[Mapping[str, independent.Sums], int]]
# What is hidden, and of no writer.
_STAY = frozenset({WRITING_NAME, ".trees.lock"})


def faults_at_any_moment(target: LineTarget, counted: Counted) -> Iterator[str]:
    """What is half: a row without its bytes, a link whose rows are not those of its window."""
    store = store_of(target.home)
    for stored in _named(target):
        (store.tree if is_tree(stored.name) else store.path)(stored)
    for link in target.chain.links():
        yield from _other_rows(target, counted, link)
    served = target.chain.published()
    if served is not None and not Path(served.path).is_dir():
        yield f"the served model {served.path} is not there"


def faults_at_the_end(target: LineTarget, counted: Counted) -> Iterator[str]:
    yield from faults_at_any_moment(target, counted)
    chain = target.chain
    for window, least in ((FIRST, 1), (SECOND, 2), (THIRD, 2)):
        newest = chain.newest(window)
        if newest is None or newest.generation < least:
            yield f"window {window} ends with {newest and newest.generation}, not {least}"
        elif chain.stale_reason(newest):
            yield f"window {window} is stale: {chain.stale_reason(newest)}"
    served, last = chain.published(), chain.newest(THIRD)
    if (
        served is None
        or last is None
        or (served.window, served.generation) != (last.window, last.generation)
    ):
        yield f"{served} serves, not {last and last.name}"
    yield from _left_over(target)


def _left_over(target: LineTarget) -> Iterator[str]:
    store = store_of(target.home)
    named, there = {each.name for each in _named(target)}, set(store.names())
    if named != there:
        yield f"in the store and not named: {there - named}; named and not there: {named - there}"
    for job in jobs_of(target.home, target.pipeline.name, unended=True):
        yield f"job {job.job_id} has no end: {job.status.state}"
    local = target.home.line(target.pipeline.name, target.line)
    for path in sorted(local.rglob("*")):
        if path.name != "lease.lock":
            yield f"left in training: {path.relative_to(local)}"
    for path in sorted(target.home.root.rglob("*")):
        is_hidden = path.name.startswith(".") and path.name not in _STAY
        if is_hidden or path.parent.name == WRITING_NAME:
            yield f"half written: {path.relative_to(target.home.root)}"


def _other_rows(target: LineTarget, counted: Counted, link: Link) -> Iterator[str]:
    wanted, dead = counted[link.window]
    for name, sums in wanted.items():
        trained = link.trained(name).model_dump()
        if trained != sums:
            yield f"window {link.window} g{link.generation}: {name} {trained}, not {sums}"
    in_links = sum(each.dead for each in link.read.values())
    stored = link.files.get("dead_letters")
    folder = stored and store_of(target.home).tree(stored)
    found = sum(letter.rows for letter in read_letters(folder)) if folder else 0
    if not dead == in_links == found:
        yield f"{link.name}: {dead} rows are dead, {in_links} counted, {found} in letters"
    if link.reread_rows < 0 or link.resumed_from_step > link.steps:
        yield f"{link.name}: {link.reread_rows} reread from step {link.resumed_from_step}"


def _named(target: LineTarget) -> list[Stored]:
    def work(rows: Connection) -> list[Stored]:
        return [
            Stored(name=row.name, checksum=row.checksum, size_bytes=row.size_bytes)
            for table in STORED
            for row in rows.execute(select(table.c.name, table.c.checksum, table.c.size_bytes))
        ]

    return database_of(target.home).read(work)
