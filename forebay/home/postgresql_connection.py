"""Connections to PostgreSQL on which nothing waits forever.

A running server ends a statement that takes too long. One that is stopped, or waits for its disk,
keeps its connections open without answering: they are cut off here, as if it had gone away.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from psycopg2 import extensions

from forebay.system.activities import waiting

# Longer than the server's own limit, because the server says why (see `_STATEMENT_SECONDS` of
# `postgresql`).
ANSWER_SECONDS = 75.0
LOOK_SECONDS = 1.0


class BoundedConnection(extensions.connection):  # type: ignore[misc]  # psycopg2 has no types
    """Its own calls to the server end in time."""

    def commit(self) -> None:
        """Commit the transaction."""
        with _answers.expected(self):
            super().commit()

    def rollback(self) -> None:
        """Roll back the transaction."""
        with _answers.expected(self):
            super().rollback()


class BoundedCursor(extensions.cursor):  # type: ignore[misc]  # psycopg2 has no types
    """Its statements end in time."""

    def execute(self, *statement: Any) -> None:
        """One statement with its parameters."""
        with _answers.expected(self.connection):
            super().execute(*statement)

    def executemany(self, *statement: Any) -> None:
        """One statement with many parameters."""
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
                    _cut_off(descriptor)


def _cut_off(descriptor: int) -> None:
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as place:
        place.shutdown(socket.SHUT_RDWR)  # unless it is gone already


_answers = _Answers()


def _after_fork() -> None:
    """A child has none of the threads."""
    global _answers  # noqa: PLW0603 - a thread of the parent may have held its lock
    _answers = _Answers()


os.register_at_fork(after_in_child=_after_fork)
