"""The database of a home: reads, and transactions that take effect once or not at all.

SQLite below FOREBAY_HOME, or the PostgreSQL that FOREBAY_DATABASE names. Each process reads the
address from its environment: it may contain a password, so it is never put into a request or an
argument.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from sqlalchemy import Connection

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
