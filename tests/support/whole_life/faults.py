"""Counts what a process does to disk and database, and kills it before a chosen operation."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, event

from forebay.system.files import trees
from support.whole_life.watched_disk import CALLS


@dataclass
class Faults:
    """One process's operations, numbered from 1. It dies before number `dies_at`."""

    dies_at: int | None = None
    # What is kept of the process for who comes after it.
    last_words: Callable[[], None] = lambda: None
    count: int = 0
    transactions: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def install(self) -> None:
        for name in CALLS:
            setattr(os, name, partial(self._called, getattr(os, name)))
        trees._exchange = partial(self._called, trees._exchange)
        event.listen(Engine, "before_cursor_execute", self._before_statement)
        event.listen(Engine, "commit", self._before_commit)

    def _called(self, real: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        self._touch()
        return real(*arguments, **more)

    def _before_statement(self, *_: object) -> None:
        self._touch()

    def _before_commit(self, connection: Connection) -> None:
        self.transactions += bool(connection.get_execution_options().get("forebay_writes"))
        self._touch()

    def _touch(self) -> None:
        with self._lock:
            self.count += 1
            if self.count == self.dies_at:
                self.last_words()
                os.kill(os.getpid(), signal.SIGKILL)
