"""The database of a home: reads, and transactions that are done once or not at all.

SQLite below FOREBAY_HOME, or the PostgreSQL that FOREBAY_DATABASE names. The address is read from
the environment of each process: it holds a password, so it goes into no request and no argument.
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
    """How long work waits in this process while the server of its database is away."""

    seconds: float = 30.0


PATIENCE = Patience()


class Database(ABC):
    """The facts of one home, for any number of threads and processes.

    Work is given as a function of a connection. It may be called again after what it did was
    undone, so it changes nothing but rows; what it raises undoes its rows and is passed on.
    """

    kind: ClassVar[Kind]
    # Whether other hosts may use it too.
    shared: ClassVar[bool]

    @abstractmethod
    def check(self) -> None:
        """Refuse a database that this process must not use; one that is not there yet is fine.

        Raises:
            ConfigError: when it belongs to another home or another version of Forebay.
        """

    @abstractmethod
    def prepare(self) -> None:
        """Make the database and its tables where there are none; otherwise as `check`."""

    @abstractmethod
    def read(self, work: Work[T], *, patient: bool = True) -> T:
        """Call `work` on one moment's state. A home without a database is empty.

        Args:
            work: what is to be read.
            patient: whether a server that is away is waited for; who looks again soon does not.

        Raises:
            ConfigError: see `check`.
            InfrastructureError: when the database cannot be reached or read.
        """

    @abstractmethod
    def transact(self, work: Work[T]) -> T:
        """Call `work` as if no other transaction ran beside it, and store what it did, durably.

        Raises:
            ConfigError: see `check`.
            InfrastructureError: when it cannot be stored; then nothing of it is stored.
        """

    @abstractmethod
    def exclusive(self, name: str, wait_seconds: float) -> AbstractContextManager[None]:
        """Hold a name that nobody else holds in the meantime; it is free when the holder dies.

        Raises:
            InfrastructureError: when another process holds it until the deadline.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what is open; it is opened again when it is used again."""


def database_of(home: Home) -> Database:
    """The database of a home; the same object at every call in a process.

    Raises:
        ConfigError: when FOREBAY_DATABASE is not an address of a database that is supported.
        MissingExtraError: when its driver is not installed.
    """
    address = "" if home.alone else os.environ.get(DATABASE_NAME, "")
    key = (str(home.root.absolute()), address)
    with _lock:
        if key not in _open:
            _open[key] = _opened(home, address)
        return _open[key]


def close_database(home: Home) -> None:
    """Close and forget that of a home which keeps it in its own folder, before the folder goes."""
    with _lock:
        database = _open.pop((str(home.root.absolute()), ""), None)
    if database is not None:
        database.close()


def close_databases() -> None:
    """Close all of this process."""
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
        f"{DATABASE_NAME}: an address such as postgresql://USER:PASSWORD@HOST/DATABASE is "
        "expected; without it, facts are kept in SQLite below FOREBAY_HOME"
    )


_open: dict[tuple[str, str], Database] = {}
# Re-entrant, as all locks of databases: a signal may end a task in the middle of a read, and its
# handler then cancels the job.
_lock = threading.RLock()


def _after_fork() -> None:
    """Connections belong to the parent: a child opens its own, and never closes the parent's."""
    global _lock  # noqa: PLW0603 - a thread of the parent may have held it
    _lock = threading.RLock()
    _open.clear()


os.register_at_fork(after_in_child=_after_fork)
