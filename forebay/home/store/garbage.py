"""Bytes in the store that no row names: found, buried by a row, then removed.

A writer stores bytes first and the row that names them second. Between the two they look like
garbage. So the collector first stores a tombstone for each name, in a transaction in which no row
names it. From then on any row that would name it is refused, and its writer stores the bytes again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from forebay.errors import InfrastructureError
from forebay.home.database.open import database_of
from forebay.home.database.tables import STORED, batches, tombstones
from forebay.home.paths import Home
from forebay.home.store.base import is_below_own
from forebay.home.store.open import own_store, store_of
from forebay.system.files.trees import find_leftovers, remove_leftovers
from forebay.system.instants import now_us

# No writer commits a row this long after it stored the bytes.
TOMBSTONE_SECONDS = 7 * 86_400.0
# For leftovers of writers whose locks cannot be seen: they may be running on another host.
LEFTOVER_SECONDS = 86_400.0
_MICROSECONDS = 1_000_000
# Only one process at a time removes what rows have named.
EXCLUSIVE_NAME = "garbage"


@dataclass(frozen=True)
class Garbage:
    """What nobody needs. names: those in the store that no row names.

    leftovers: of writers that died; names in the store and paths in the home.
    """

    names: list[str]
    leftovers: list[str]


def collect(home: Home, *, dry_run: bool = False) -> Garbage:
    """Remove what no row names, and what dead writers left.

    If it was killed, the next call continues. With `dry_run` nothing is changed.

    Raises:
        ConfigError: when the store belongs to another home.
        InfrastructureError: when the store or the database cannot be reached.
    """
    store = store_of(home) if dry_run else own_store(home)
    # The store first: what is stored after this listing does not concern this call.
    found = [name for name in store.names() if is_below_own(name)]
    database, now = database_of(home), time.time()
    # What changed up to then has no living writer: locks say it, or age if one may be elsewhere.
    latest_here = now - (LEFTOVER_SECONDS if database.shared else 0.0)
    latest = latest_here if store.knows_writers else now - LEFTOVER_SECONDS
    left = [
        each.name
        for each in store.leftovers()
        if each.changed_at <= latest * _MICROSECONDS and is_below_own(each.name)
    ]
    left_here = find_leftovers(home.root, home.store, latest_here)
    if dry_run:
        names = database.read(lambda rows: unnamed(rows, found))
    else:
        names = database.transact(lambda rows: bury(rows, found)) if found else []
        store.remove([*names, *left])
        left_here = remove_leftovers(left_here)
    return Garbage(names, [*left, *(str(each.relative_to(home.root)) for each in left_here)])


@contextmanager
def only_collector(home: Home, wait_seconds: float) -> Iterator[None]:
    """Be the only process that removes what rows have named so far.

    Raises:
        InfrastructureError: when another process is still collecting at the deadline.
    """
    with ExitStack() as stack:
        alone = database_of(home).exclusive(EXCLUSIVE_NAME, wait_seconds)
        try:
            stack.enter_context(alone)
        except InfrastructureError as error:
            raise InfrastructureError(
                f"nothing is removed from the store now: {error} (only one process at a time "
                "collects garbage)"
            ) from error
        yield


def require_unburied(connection: Connection, names: Sequence[str]) -> None:
    """Check that a row may name these bytes of the store.

    Raises:
        InfrastructureError: when they were collected as garbage before the row was stored.
    """
    named = tombstones.c.name.in_(names)
    buried = connection.scalar(select(tombstones.c.name).where(named).limit(1))
    if buried is not None:
        raise InfrastructureError(
            f"{buried} was removed from the store before anything named it (forebay gc): "
            "try again, and it is stored again"
        )


def bury(connection: Connection, names: Iterable[str]) -> list[str]:
    """Store tombstones for the names that no row names, and return these; drop old tombstones."""
    now = now_us()
    old = now - int(TOMBSTONE_SECONDS) * _MICROSECONDS
    connection.execute(delete(tombstones).where(tombstones.c.buried_at < old))
    garbage = unnamed(connection, names)
    for some in batches(garbage):
        known = set(
            connection.scalars(select(tombstones.c.name).where(tombstones.c.name.in_(some)))
        )
        rows = [{"name": name, "buried_at": now} for name in some if name not in known]
        if rows:
            connection.execute(insert(tombstones), rows)
    return garbage


def unnamed(connection: Connection, names: Iterable[str]) -> list[str]:
    found: list[str] = []
    for some in batches(names):
        named = {
            name
            for table in STORED
            for name in connection.scalars(select(table.c.name).where(table.c.name.in_(some)))
        }
        found += [name for name in some if name not in named]
    return found
