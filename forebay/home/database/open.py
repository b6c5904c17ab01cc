"""Opens the database of a home, once in each process."""

from __future__ import annotations

import os
import threading

from forebay.errors import ConfigError
from forebay.home.database.base import DATABASE_NAME, Database
from forebay.home.paths import Home


def database_of(home: Home) -> Database:
    """The database of a home; the same object for every call in a process.

    Raises:
        ConfigError: when FOREBAY_DATABASE is not an address of a supported database.
        MissingExtraError: when its driver is not installed.
    """
    address = "" if home.alone else os.environ.get(DATABASE_NAME, "")
    key = (str(home.root.absolute()), address)
    with _lock:
        if key not in _open:
            _open[key] = _opened(home, address)
        return _open[key]


def close_database(home: Home) -> None:
    """Close and forget the database in a home's own folder, before the folder is removed."""
    with _lock:
        database = _open.pop((str(home.root.absolute()), ""), None)
    if database is not None:
        database.close()


def close_databases() -> None:
    with _lock:
        for database in _open.values():
            database.close()
        _open.clear()


def _opened(home: Home, address: str) -> Database:
    if not address:
        from forebay.home.database.sqlite import SqliteDatabase

        return SqliteDatabase(home)
    if address.startswith(("postgresql:", "postgresql+psycopg2:", "postgres:")):
        from forebay.home.database.postgresql import PostgresDatabase

        return PostgresDatabase(home, address)
    raise ConfigError(
        f"{DATABASE_NAME}: expected an address such as postgresql://USER:PASSWORD@HOST/DATABASE; "
        "if it is not set, the database is an SQLite file below FOREBAY_HOME"
    )


_open: dict[tuple[str, str], Database] = {}
# Re-entrant, like all locks of databases: a signal may interrupt a task during a read, and its
# handler then cancels the job through the database.
_lock = threading.RLock()


def _after_fork() -> None:
    """Connections belong to the parent: a child opens its own, and never closes the parent's."""
    global _lock  # noqa: PLW0603 - a thread of the parent may have held it
    _lock = threading.RLock()
    _open.clear()


os.register_at_fork(after_in_child=_after_fork)
