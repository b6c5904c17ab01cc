"""The database as one SQLite file below FOREBAY_HOME.

Writers queue for a lock file before they begin, in order of arrival (`system.turns`). SQLite itself
would let them poll: with 50 writers, the unlucky ones then wait ten seconds instead of one. Only
SQLite may open its own files: closing any other descriptor of them would drop its locks.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import DBAPIError

from forebay.errors import InfrastructureError
from forebay.home.database import identity, tables
from forebay.home.database.base import Database, Kind, T, Work
from forebay.home.database.reserve import make_reserve
from forebay.home.paths import Home
from forebay.home.privacy import make_home
from forebay.system.files.durable import make_folder, sync, writing
from forebay.system.files.locks import TurnLock, locked

FILE_NAME = "forebay.db"
_WRITES = "forebay_writes"
# A transaction takes milliseconds: a longer wait is a wait for a disk that hangs.
_WRITE_LOCK_SECONDS = 60.0
_BUSY_SECONDS = 10.0
# SQLite calls it an I/O error when what its processes share finds no room.
_FREE_BYTES = 64 << 10


class _Opened(NamedTuple):
    engine: Engine
    inode: tuple[int, int]


class SqliteDatabase(Database):
    kind: ClassVar[Kind] = "sqlite"
    shared: ClassVar[bool] = False

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = home.root / FILE_NAME
        self._lock_path = home.root / f"{FILE_NAME}.lock"
        self._opened: _Opened | None = None
        self._opening = threading.RLock()

    def check(self) -> None:
        self.read(lambda _: None)

    def prepare(self) -> None:
        if self._current() is None:
            self.transact(lambda _: None)

    def read(self, work: Work[T], *, patient: bool = True) -> T:  # noqa: ARG002 - no server
        opened = self._current()
        if opened is None:
            return _called(_nothing(), work)
        with _clear_errors(self.path):
            return _called(opened.engine, work)

    def transact(self, work: Work[T]) -> T:
        lock = TurnLock(self._lock_path)
        with writing(self._lock_path):
            make_home(self._home)
            if not lock.acquire(_WRITE_LOCK_SECONDS):
                raise InfrastructureError(
                    f"{self._lock_path} has been locked for {_WRITE_LOCK_SECONDS:g} s: a process "
                    "that writes to this home hangs, or its disk does: end it, or check the disk, "
                    "and run again"
                )
        try:
            opened = self._current() or self._made()
            with _clear_errors(self.path):
                return _called(opened.engine, work, writes=True)
        finally:
            lock.release()

    def exclusive(self, name: str, wait_seconds: float) -> AbstractContextManager[None]:
        make_home(self._home)
        folder = self._home.root / "locks"
        make_folder(folder)
        return locked(folder / f"{name}.lock", wait_seconds)

    def copy_to(self, path: Path) -> None:
        """Write the state of one moment to another file, durably. Nobody has to wait meanwhile.

        Raises:
            InfrastructureError: when it cannot be read or written.
        """
        path.unlink(missing_ok=True)
        opened = self._current()
        if opened is None:
            raise InfrastructureError(f"{self.path} was removed while it was being copied")
        try:
            with opened.engine.connect() as source, closing(sqlite3.connect(path)) as copy:
                connection: Any = source.connection.driver_connection
                connection.backup(copy)
        except sqlite3.Error as error:
            raise InfrastructureError(
                f"{self.path} to {path}: {error}{_way_out(str(error), path)}"
            ) from error
        sync(path)

    def close(self) -> None:
        with self._opening:
            if self._opened is not None:
                self._opened.engine.dispose()
            self._opened = None

    def _current(self) -> _Opened | None:
        """The file that is there now; None if there is none."""
        with self._opening:
            inode = _inode(self.path)
            if self._opened is None or self._opened.inode != inode:
                self._opened = self._open(inode)
            return self._opened

    def _open(self, inode: tuple[int, int] | None) -> _Opened | None:
        if self._opened is not None:  # the folder was moved away, or restored from a backup
            self._opened.engine.dispose()
        marker = identity.read_marker(self._home)
        found = None
        if inode is not None:
            engine = _engine_of(self.path)
            with _clear_errors(self.path):
                found = _called(engine, partial(identity.stored_id, self._home))
        if marker is None and found is None:
            identity.require_new(self._home)
        identity.require_same(self._home, marker, self.kind, found)
        if inode is None or found is None:
            return None  # if there is a file, its creator died before filling it
        if marker is None:
            identity.write_marker(self._home, self.kind, found)
        return _Opened(engine, inode)

    def _made(self) -> _Opened:
        """Create the database; the caller holds the write lock."""
        engine = _engine_of(self.path)
        with _clear_errors(self.path):
            _require_journal(engine, self.path)
            home_id = _called(engine, identity.make_tables, writes=True)
        identity.write_marker(self._home, self.kind, home_id)
        make_reserve(self._home.root)
        with self._opening:
            inode = _inode(self.path)
            if inode is None:
                raise InfrastructureError(f"{self.path} was removed while it was being created")
            self._opened = _Opened(engine, inode)
            return self._opened


def _engine_of(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),  # whatever characters the path has
        connect_args={"timeout": _BUSY_SECONDS},
    )
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


@cache
def _nothing() -> Engine:
    """A database with empty tables, to read from when there is none."""
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
    tables.METADATA.create_all(engine)
    return engine


def _configure(connection: sqlite3.Connection, _record: object) -> None:
    # Python's own handling begins transactions late and as readers.
    connection.isolation_level = None
    for setting in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _called(engine: Engine, work: Work[T], *, writes: bool = False) -> T:
    with engine.connect() as opened, opened.execution_options(**{_WRITES: writes}).begin():
        return work(opened)


def _require_journal(engine: Engine, path: Path) -> None:
    """Set WAL: concurrent readers and a writer need a disk with locks and shared memory."""
    raw: Any = engine.raw_connection()
    with closing(raw):
        (mode,) = raw.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        raise InfrastructureError(
            f"{path}: SQLite cannot keep a write-ahead log here (journal mode {mode!r}): put "
            "FOREBAY_HOME on a local disk, or set FOREBAY_DATABASE to a PostgreSQL server"
        )


def _inode(path: Path) -> tuple[int, int] | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into our own, which name the place and what to do."""
    try:
        yield
    except DBAPIError as error:
        reason = str(error.orig)
        raise InfrastructureError(f"{path}: {reason}{_way_out(reason, path)}") from error


def _way_out(reason: str, path: Path) -> str:
    if "disk I/O" in reason and shutil.disk_usage(path.parent).free < _FREE_BYTES:
        reason = "database or disk is full"
    ways = {
        "is full": "the disk has no room left: free some (`forebay gc` may) and run again",
        "disk I/O": "check the disk and run again",
        "readonly": "make the file and its folder writable by this user",
        "unable to open": "make the folder readable and writable by this user",
        "malformed": "restore it from a backup",
        "not a database": "restore it from a backup",
        "locking protocol": "put FOREBAY_HOME on a local disk, or set FOREBAY_DATABASE",
        "locked": "another program has locked it: run again",
    }
    return next((f": {way}" for sign, way in ways.items() if sign in reason), "")
