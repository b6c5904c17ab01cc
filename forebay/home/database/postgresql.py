"""The database as a schema `forebay` on a PostgreSQL server, shared by any number of hosts."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar

from psycopg2 import extensions
from sqlalchemy import Connection, Dialect, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, ProgrammingError
from sqlalchemy.schema import CreateSchema

from forebay.errors import ConfigError, InfrastructureError
from forebay.home.database import identity, tables
from forebay.home.database.base import DATABASE_NAME, PATIENCE, Database, Kind, T, Work
from forebay.home.paths import Home
from forebay.system.extras import require_extra
from forebay.system.liveness import waiting

# A running server ends a statement that takes too long. One that is stopped, or waits for its disk,
# keeps its connections open without answering: they are cut off here, as if it had gone away.

# Longer than the server's own limit, because the server says why (see `_STATEMENT_SECONDS` of
# `postgresql`).
ANSWER_SECONDS = 75.0
LOOK_SECONDS = 1.0


class BoundedConnection(extensions.connection):  # type: ignore[misc]  # psycopg2 has no types
    def commit(self) -> None:
        with _answers.expected(self):
            super().commit()

    def rollback(self) -> None:
        with _answers.expected(self):
            super().rollback()


class BoundedCursor(extensions.cursor):  # type: ignore[misc]  # psycopg2 has no types
    def execute(self, *statement: Any) -> None:
        with _answers.expected(self.connection):
            super().execute(*statement)

    def executemany(self, *statement: Any) -> None:
        with _answers.expected(self.connection):
            super().executemany(*statement)


class _Answers:
    """Cuts off connections that get no answer: one thread for the whole process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal's handler may ask the server, too
        self._due: dict[int, float] = {}  # by descriptor
        self._thread: threading.Thread | None = None

    @contextmanager
    def expected(self, connection: extensions.connection) -> Iterator[None]:
        """The block calls the server, and fails if no answer comes in time."""
        descriptor = connection.fileno()
        with self._lock:
            self._due[descriptor] = time.monotonic() + ANSWER_SECONDS
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="answers", daemon=True)
                self._thread.start()
        try:
            with waiting():
                yield
        finally:
            with self._lock:
                self._due.pop(descriptor, None)

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            with self._lock:
                now = time.monotonic()
                for descriptor in [one for one, due in self._due.items() if due <= now]:
                    del self._due[descriptor]
                    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as place:
                        place.shutdown(socket.SHUT_RDWR)  # unless it is gone already


_answers = _Answers()


def _after_fork() -> None:
    """A child has none of the threads."""
    global _answers  # noqa: PLW0603 - a thread of the parent may have held its lock
    _answers = _Answers()


os.register_at_fork(after_in_child=_after_fork)


_CONNECT_SECONDS = 5
# The shortest timeout that the driver honours.
_IMPATIENT_CONNECT_SECONDS = 2
_STATEMENT_SECONDS = 60
# A longer wait is logged.
_SILENT_SECONDS = 5.0
_PAUSE_SECONDS, _PAUSE_MAX_SECONDS = 0.01, 1.0
# serialization_failure and deadlock_detected: others were faster, the work may be repeated.
_CONFLICTS = frozenset({"40001", "40P01"})
# What a server reports while it cannot serve yet, or not for the moment.
_PASSING = (
    "starting up",
    "not yet accepting",
    "shutting down",
    "recovery",
    "too many",
    "connection slots",
    "terminating connection",
)
# What the client reports about an address that cannot work until it is corrected.
_INCURABLE = (
    ' value: "',
    "invalid integer value",
    "invalid port number",
    "no password supplied",
    "definition of service",
    "root certificate file",
    "does not support SSL",
)
_SETTINGS = {
    "timezone": "UTC",
    "statement_timeout": f"{_STATEMENT_SECONDS}s",
    "lock_timeout": f"{_STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{_STATEMENT_SECONDS}s",
}
_CONNECT_ARGUMENTS = {
    "connection_factory": BoundedConnection,
    "cursor_factory": BoundedCursor,
    "connect_timeout": _CONNECT_SECONDS,
    "application_name": "forebay",
    "options": " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items()),
    # A server that vanished silently is noticed within half a minute.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_POLL_SECONDS = 0.1
_LOG = logging.getLogger(__name__)
# Of the current read; see `Database.read`.
_is_patient: ContextVar[bool] = ContextVar("is_patient", default=True)


class PostgresDatabase(Database):
    """See `Database`. Transactions are serializable: one that loses a conflict is repeated."""

    kind: ClassVar[Kind] = "postgresql"
    shared: ClassVar[bool] = True

    def __init__(self, home: Home, address: str) -> None:
        self._home = home
        self._engine = _engine_of(address)
        self._checked = False

    def check(self) -> None:
        self._check(make=False)

    def prepare(self) -> None:
        self._check(make=True)

    def read(self, work: Work[T], *, patient: bool = True) -> T:
        outer = _is_patient.set(patient)
        try:
            self._check(make=True)
            return self._repeated(lambda: self._committed(work, "REPEATABLE READ"))
        finally:
            _is_patient.reset(outer)

    def transact(self, work: Work[T]) -> T:
        self._check(make=True)
        return self._repeated(lambda: self._committed(work, "SERIALIZABLE"))

    @contextmanager
    def exclusive(self, name: str, wait_seconds: float) -> Iterator[None]:
        self._check(make=True)
        key = {"key": int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)}
        deadline = time.monotonic() + wait_seconds
        while (connection := self._repeated(lambda: self._locking(key))) is None:
            if time.monotonic() >= deadline:
                raise InfrastructureError(
                    f"{name} has been locked for {wait_seconds:g} s: try again"
                )
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            try:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)
            except DBAPIError as error:  # with the connection, the server has dropped the lock
                _LOG.warning("%s: %s", name, self._ours(error))
            connection.close()

    def _locking(self, key: dict[str, int]) -> Connection | None:
        """The connection that has the lock now; None while another one has it."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            if connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), key):
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None

    def close(self) -> None:
        self._engine.dispose()

    def _check(self, *, make: bool) -> None:
        """Several threads and processes may do this at once: none waits for another."""
        if self._checked:
            return
        marker = identity.read_marker(self._home)
        stored_id = partial(identity.stored_id, self._home)
        found = self._repeated(lambda: self._committed(stored_id, "SERIALIZABLE"))
        if found is None and marker is None:
            identity.require_new(self._home)
            if not make:
                return
            found = self._repeated(lambda: self._committed(self._made, "READ COMMITTED"))
        identity.require_same(self._home, marker, self.kind, found)
        if marker is None and found is not None:
            identity.write_marker(self._home, self.kind, found)
        self._checked = True

    def _made(self, connection: Connection) -> str:
        """Create schema and tables; if several processes do so at once, the first one does."""
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('forebay'))"))
        found = identity.stored_id(self._home, connection)
        if found is not None:
            return found
        connection.execute(CreateSchema(tables.SCHEMA, if_not_exists=True))
        return identity.make_tables(connection)

    def _repeated(self, work: Callable[[], T]) -> T:
        """Repeat work that may be repeated until it succeeds or takes too long."""
        began, said = time.monotonic(), False
        patience_seconds = PATIENCE.seconds if _is_patient.get() else 0.0
        pause = _PAUSE_SECONDS
        while True:
            try:
                done = work()
            except DBAPIError as error:
                waited = time.monotonic() - began
                if not _may_repeat(error) or waited + pause > patience_seconds:
                    raise self._ours(error) from error
                if not said and waited > _SILENT_SECONDS:
                    _LOG.warning("waiting for up to %d s: %s", patience_seconds, self._ours(error))
                    said = True
            else:
                if said:
                    _LOG.info("%s answers again", self._place())
                return done
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads out, hides nothing
            pause = min(2 * pause, _PAUSE_MAX_SECONDS)

    def _committed(self, work: Work[T], isolation: str) -> T:
        """Run one transaction; if COMMIT got no answer, ask the server what became of it."""
        with self._engine.connect() as opened:
            connection = opened.execution_options(isolation_level=isolation)
            transaction = connection.begin()
            done = work(connection)
            number = connection.scalar(text("SELECT pg_current_xact_id_if_assigned()::text"))
            try:
                transaction.commit()
            except DBAPIError as error:
                if not error.connection_invalidated or number is None:
                    raise
                if not self._is_committed(number):
                    raise
            return done

    def _is_committed(self, number: str) -> bool:
        """Whether the transaction with this number was committed.

        Raises:
            InfrastructureError: when the server does not answer. Its work is not repeated then: it
                would be done twice if the COMMIT had arrived.
        """
        deadline = time.monotonic() + PATIENCE.seconds
        ask = text("SELECT pg_xact_status(CAST(:number AS xid8))")
        state = "in progress"
        while state not in {"committed", "aborted"} and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            try:
                with self._engine.connect() as connection:
                    state = str(connection.scalar(ask, {"number": number}))
            except DBAPIError:
                continue  # not back yet
        if state not in {"committed", "aborted"}:
            raise InfrastructureError(
                f"{self._place()} did not report whether the last change was stored: run again "
                "once it answers"
            )
        return state == "committed"

    def _ours(self, error: DBAPIError) -> InfrastructureError:
        first = (str(error.orig).strip().splitlines() or [""])[0]
        if error.connection_invalidated or _code(error) is None:
            return InfrastructureError(
                f"{self._place()} cannot be reached ({first}): check the server, or correct "
                f"{DATABASE_NAME}, and run again"
            )
        return InfrastructureError(f"{self._place()} refused: {first}")

    def _place(self) -> str:
        url = self._engine.url
        return f"the database {url.database!r} on {url.host or 'the local socket'}"


def _engine_of(address: str) -> Engine:
    require_extra("postgres")

    try:
        if "@" in (make_url(address).host or ""):
            raise ValueError("an @ of the password is not written as %40")
        engine = create_engine(
            address.replace("postgres://", "postgresql://", 1).replace(
                "postgresql://", "postgresql+psycopg2://", 1
            ),
            connect_args=_CONNECT_ARGUMENTS,
            pool_pre_ping=True,
            pool_size=2,
            max_overflow=8,
            pool_timeout=_STATEMENT_SECONDS,
            hide_parameters=True,
            execution_options={"schema_translate_map": tables.IN_SCHEMA},
        )
    except (ArgumentError, ValueError):
        # Without the cause: it may quote the password.
        raise ConfigError(
            f"{DATABASE_NAME} is not an address such as postgresql://USER:PASSWORD@HOST/DATABASE. "
            "In the password, write @ as %40, : as %3A and / as %2F"
        ) from None
    event.listen(engine, "do_connect", _connect)
    return engine


def _connect(
    dialect: Dialect, _record: object, place: list[Any], options: dict[str, Any]
) -> DBAPIConnection:
    """Open a connection; all threads share `options`."""
    if not _is_patient.get():
        options = {**options, "connect_timeout": _IMPATIENT_CONNECT_SECONDS}
    with waiting():  # it has a deadline
        return dialect.connect(*place, **options)


def _may_repeat(error: DBAPIError) -> bool:
    code = _code(error)
    if code is not None:
        return code in _CONFLICTS or error.connection_invalidated
    # No code: no connection. What the server itself refuses stays refused, and so does what the
    # client refuses without asking a server.
    reason = str(error.orig)
    if any(sign in reason for sign in _PASSING):
        return True
    if isinstance(error, ProgrammingError):
        return False
    return "FATAL" not in reason and not any(sign in reason for sign in _INCURABLE)


def _code(error: DBAPIError) -> str | None:
    """The SQLSTATE of an error; None if the server was not reached at all."""
    code = getattr(error.orig, "pgcode", None)
    return code if isinstance(code, str) else None
