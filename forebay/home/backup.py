"""A copy of a home while jobs run: its database at one moment, and all that this names.

Meanwhile trainers drop checkpoints and `forebay gc` collects, so that a name of the copied database
may be gone from the store. Then the database is copied again, and what it names since is added. The
copy is done when it has every name, but for those that were gone before the database was copied:
these the home has lost.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Table, select, update

from forebay.errors import DataError, InfrastructureError, UsageError
from forebay.home import tables
from forebay.home.database import database_of
from forebay.home.folder_copy import copy_name
from forebay.home.folder_store import FolderStore
from forebay.home.identity import MARKER_NAME, read_marker, write_marker
from forebay.home.paths import Home
from forebay.home.privacy import close_home
from forebay.home.sqlite import FILE_NAME, SqliteDatabase
from forebay.home.store import STORE_NAME, Stored, store_of
from forebay.home.tables import STORED
from forebay.system.files import make_folder, sync, writing

# What has no name yet, inside the copy.
_UNFINISHED_NAME = ".unfinished"
_PAGE_ROWS = 1000
_ROUNDS_MAX = 20


class BackedUp(NamedTuple):
    """names: how many the copy's database has. lost: why some of them are not in its store.

    store_copied: False where the store is a bucket, which the copy keeps using.
    """

    names: int
    lost: list[str]
    store_copied: bool


def back_up(home: Home, target: Path) -> BackedUp:
    """Copy a home to a new folder, which is a home of its own from then on.

    Jobs are not copied: for the copy, those that run now are lost, and the next run continues from
    the newest window that was trained. A copy that is cut off is refused as a home.

    Raises:
        UsageError: when there is no home, the target has something in it or is inside the home, or
            the facts are on a PostgreSQL server.
        InfrastructureError: when the disk refuses it.
    """
    database, store = database_of(home), store_of(home)
    if not isinstance(database, SqliteDatabase):
        raise UsageError(
            "the facts of this home are on a PostgreSQL server: copy them with "
            "`pg_dump --schema=forebay`, and the store beside them, as docs/home.md says"
        )
    marker = read_marker(home)
    if marker is None:
        raise UsageError(f"{home.root} is not a home yet: there is nothing to copy")
    root = store.root if isinstance(store, FolderStore) else None
    # A store that is copied from elsewhere stays the home's own: the copy is another home.
    copied_id = uuid.uuid4().hex if root and os.environ.get(STORE_NAME) else marker.id
    _require_free(target, [home.root, *([root] if root else [])])
    close_home(Home(target))
    # First: until its database is there, the copy says that it has lost it.
    write_marker(Home(target), database.kind, copied_id)
    unfinished = target / _UNFINISHED_NAME
    make_folder(unfinished)
    names, lost = _copied(database, root, target, unfinished, copied_id)
    with writing(target):
        (unfinished / FILE_NAME).rename(target / FILE_NAME)
        sync(target)
        shutil.rmtree(unfinished)
    return BackedUp(names, lost, store_copied=root is not None)


def _copied(
    database: SqliteDatabase, root: Path | None, target: Path, unfinished: Path, home_id: str
) -> tuple[int, list[str]]:
    """How many names there are when the database and all that it names is copied; what is lost."""
    gone: dict[str, str] = {}
    for _ in range(_ROUNDS_MAX):
        database.copy_to(unfinished / FILE_NAME)
        _name(unfinished, home_id)
        before, gone, names = gone, {}, 0
        for stored in _names(unfinished):
            names += 1
            try:
                if root is not None:
                    copy_name(stored, root, target / "store", unfinished)
            except DataError as error:
                gone[stored.name] = str(error)
        if gone.keys() <= before.keys():
            return names, list(gone.values())
    raise InfrastructureError(
        f"the store changes faster than it is copied to {target}: copy it when fewer jobs run"
    )


def _name(folder: Path, home_id: str) -> None:
    """Say whose the copied database is."""
    (folder / MARKER_NAME).unlink(missing_ok=True)  # of the copy before
    copy = SqliteDatabase(Home(folder))
    copy.transact(lambda rows: rows.execute(update(tables.home).values(id=home_id)))
    copy.close()
    write_marker(Home(folder), copy.kind, home_id)


def _names(folder: Path) -> Iterator[Stored]:
    """What the copied database names, each name once."""
    copy = SqliteDatabase(Home(folder))
    try:
        for table in STORED:
            after = ""
            while page := copy.read(partial(_page, table, after)):
                yield from page
                after = page[-1].name
    finally:
        copy.close()


def _page(table: Table, after: str, rows: Connection) -> list[Stored]:
    wanted = select(table.c.name, table.c.checksum, table.c.size_bytes).distinct()
    wanted = wanted.where(table.c.name > after).order_by(table.c.name).limit(_PAGE_ROWS)
    return [Stored.model_validate(dict(row)) for row in rows.execute(wanted).mappings()]


def _require_free(target: Path, homes: list[Path]) -> None:
    """Refuse a target that is not a new folder of its own."""
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError(f"{target} exists and is not empty: name a new folder for the copy")
    for root in homes:
        if target.resolve().is_relative_to(root.resolve()):
            raise UsageError(f"{target} is inside {root}: name a folder outside for the copy")
