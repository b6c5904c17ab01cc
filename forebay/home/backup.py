"""Copies a home while jobs run: its database at one moment, and everything that it names.

Meanwhile trainers drop checkpoints and `forebay gc` collects garbage, so a name in the copied
database may already be gone from the store. Then the database is copied again, and whatever it
names now is added. The copy is complete when it has every name except those that were missing
before the database was copied: the home itself has lost those.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select, union, update

from forebay.errors import DataError, InfrastructureError, UsageError
from forebay.home.database import tables
from forebay.home.database.identity import read_marker, write_marker
from forebay.home.database.open import database_of
from forebay.home.database.sqlite import FILE_NAME, SqliteDatabase
from forebay.home.database.tables import STORED
from forebay.home.paths import Home
from forebay.home.privacy import close_home
from forebay.home.store.base import STORE_NAME, Stored, is_tree, require_name
from forebay.home.store.folder_store import FolderStore, link_or_copy, new_folder_in
from forebay.home.store.open import store_of
from forebay.home.store.trees import CONTENT_NAME, INDEX_NAME, missing, read_index
from forebay.system.files.durable import make_folder, sync, writing
from forebay.system.files.trees import name_tree

# A folder inside the copy for what does not have its name yet.
_UNFINISHED_NAME = ".unfinished"
_PAGE_ROWS = 1000
_ROUNDS_MAX = 20


class BackedUp(NamedTuple):
    """names: how many the copy's database has. lost: why some of them are not in its store.

    store_copied: False if the store is a bucket, which the copy keeps using.
    """

    names: int
    lost: list[str]
    store_copied: bool


def back_up(home: Home, target: Path) -> BackedUp:
    """Copy a home to a new folder, which is a home of its own from then on.

    Jobs are not copied: in the copy, those that run now count as lost, and the next run continues
    from the newest window that was trained. An interrupted copy is refused as a home.

    Raises:
        UsageError: when there is no home, the target is not empty or is inside the home, or the
            database is on a PostgreSQL server.
        InfrastructureError: when something cannot be read or written.
    """
    database, store = database_of(home), store_of(home)
    if not isinstance(database, SqliteDatabase):
        raise UsageError(
            "the database of this home is on a PostgreSQL server: copy it with "
            "`pg_dump --schema=forebay --dbname=DATABASE`, and copy the store as well "
            "(docs/internals/home.md)"
        )
    marker = read_marker(home)
    if marker is None:
        raise UsageError(
            f"{home.root} is not a home yet: nothing to copy (set FOREBAY_HOME to the "
            "folder that you mean)"
        )
    root = store.root if isinstance(store, FolderStore) else None
    # A store outside the home stays with the original home: the copy gets an id of its own.
    copied_id = uuid.uuid4().hex if root and os.environ.get(STORE_NAME) else marker.id
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError(f"{target} exists and is not empty: name a new folder for the copy")
    for folder in filter(None, (home.root, root)):
        if target.resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"{target} is inside {folder}: name a folder outside for the copy")
    close_home(Home(target))
    # First: until the database is there, opening the copy reports that its database is lost.
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
    """Copy the database and all that it names: how many names there are, and what is lost."""
    gone: dict[str, str] = {}
    for _ in range(_ROUNDS_MAX):
        database.copy_to(unfinished / FILE_NAME)
        before, gone, names = gone, {}, 0
        for stored in _named(unfinished, home_id):
            names += 1
            try:
                if root is not None:
                    copy_name(stored, root, target / "store", unfinished)
            except DataError as error:
                gone[stored.name] = str(error)
        if gone.keys() <= before.keys():
            return names, list(gone.values())
    raise InfrastructureError(
        f"the store changes faster than it can be copied to {target}: try again when fewer jobs run"
    )


def _named(folder: Path, home_id: str) -> Iterator[Stored]:
    """What the copied database names, each name once, after it got the id of the new home."""
    copy = SqliteDatabase(Home(folder))
    try:
        copy.transact(lambda rows: rows.execute(update(tables.home).values(id=home_id)))
        after = ""
        while page := copy.read(partial(_page, after)):
            yield from page
            after = page[-1].name
    finally:
        copy.close()


def _page(after: str, rows: Connection) -> list[Stored]:
    named = (
        select(table.c.name, table.c.checksum, table.c.size_bytes).where(table.c.name > after)
        for table in STORED
    )
    wanted = union(*named).order_by("name").limit(_PAGE_ROWS)
    return [Stored.model_validate(dict(row)) for row in rows.execute(wanted).mappings()]


def copy_name(stored: Stored, source: Path, target: Path, unfinished: Path) -> None:
    """Make what has a name below one folder available below another, durably.

    unfinished: a folder on the target's file system for what is not finished.

    Raises:
        DataError: when it is missing, or the index of a tree is damaged.
        InfrastructureError: when it cannot be read or written.
    """
    place, new = source / require_name(stored.name), target / stored.name
    if new.exists():
        return
    with writing(new):
        make_folder(new.parent)
        try:
            if is_tree(stored.name):
                _copy_tree(stored, place, new, unfinished)
            else:
                link_or_copy(place, unfinished / new.name)
                sync(unfinished / new.name)
                (unfinished / new.name).rename(new)
        except (FileNotFoundError, NotADirectoryError):
            raise missing(str(place)) from None
        sync(new.parent)


def _copy_tree(stored: Stored, place: Path, new: Path, unfinished: Path) -> None:
    """Copy what the index lists: a folder that is being removed looks like an empty one."""
    content = (place / INDEX_NAME).read_bytes()
    index = read_index(content, stored, str(place))
    with new_folder_in(unfinished, new.name) as (folder, stream):
        stream.write(content)
        stream.flush()
        for path in ("", *index.folders):
            (folder / CONTENT_NAME / path).mkdir()
        for file in index.files:
            link_or_copy(place / CONTENT_NAME / file.path, folder / CONTENT_NAME / file.path)
        name_tree(folder, new)
