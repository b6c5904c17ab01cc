"""The database of a home: reads, and transactions that take effect once or not at all.

SQLite below FOREBAY_HOME, or the PostgreSQL that FOREBAY_DATABASE names. Each process reads the
address from its environment: it may contain a password, so it is never put into a request or an
argument.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from sqlalchemy import Connection

from forebay.errors import ConfigError
from forebay.home.paths import Home

DATABASE_NAME = "FOREBAY_DATABASE"
Kind = Literal["sqlite", "postgresql"]
T = TypeVar("T")
Work = Callable[[Connection], T]


@dataclass
class Patience:
    """How long work waits in this process while the database server is unavailable."""

    seconds: float = 30.0


PATIENCE = Patience()


class Database(ABC):
    """The facts of one home, for any number of threads and processes.

    Work is a function of a connection. It may be rolled back and called again, so it must change
    nothing but rows. If it raises, its rows are rolled back and the exception is passed on.
    """

    kind: ClassVar[Kind]
    # Whether other hosts may use it too.
    shared: ClassVar[bool]

    @abstractmethod
    def check(self) -> None:
        """Refuse a database that this process must not use; one that does not exist yet is fine.

        Raises:
            ConfigError: when it belongs to another home or another version of Forebay.
        """

    @abstractmethod
    def prepare(self) -> None:
        """Create the database and its tables if they do not exist; otherwise like `check`."""

    @abstractmethod
    def read(self, work: Work[T], *, patient: bool = True) -> T:
        """Call `work` on the state of one moment. A home without a database reads as empty.

        Args:
            work: reads what is wanted.
            patient: whether to wait for a server that is unavailable; callers that poll do not.

        Raises:
            ConfigError: see `check`.
            InfrastructureError: when the database cannot be reached or read.
        """

    @abstractmethod
    def transact(self, work: Work[T]) -> T:
        """Call `work` as if no other transaction ran at the same time; store its changes durably.

        Raises:
            ConfigError: see `check`.
            InfrastructureError: when the changes cannot be stored; then none of them are.
        """

    @abstractmethod
    def exclusive(self, name: str, wait_seconds: float) -> AbstractContextManager[None]:
        """Hold a name that nobody else can hold meanwhile; it is released when the holder dies.

        Raises:
            InfrastructureError: when another process still holds it at the deadline.
        """

    @abstractmethod
    def close(self) -> None:
        """Release what is open; it is opened again when it is next used."""


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
    """Close all databases of this process."""
    with _lock:
        for database in _open.values():
            database.close()
        _open.clear()


def _opened(home: Home, address: str) -> Database:
    if not address:
        from forebay.home.sqlite import SqliteDatabase

        return SqliteDatabase(home)
    if address.startswith(("postgresql:", "postgresql+psycopg2:", "postgres:")):
        from forebay.home.postgresql import PostgresDatabase

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
