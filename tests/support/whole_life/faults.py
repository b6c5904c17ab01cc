"""Counts what a process does to disk and database, and acts before chosen operations."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, event

from forebay.system.files import trees
from support.whole_life.watched_disk import CALLS


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Faults:
    """One process's operations, numbered from 1. before: what is done before some of them."""

    before: Mapping[int, Callable[[], None]] = field(default_factory=dict)
    count: int = 0
    transactions: int = 0
    # What is done before an operation is none itself, and other threads wait for it.
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _is_acting: bool = False

    def install(self) -> None:
        for name in CALLS:
            setattr(os, name, partial(self._called, getattr(os, name)))
        trees._exchange = partial(self._called, trees._exchange)
        event.listen(Engine, "before_cursor_execute", lambda *_: self._touch())
        event.listen(Engine, "commit", self._before_commit)

    def _called(self, real: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        self._touch()
        return real(*arguments, **more)

    def _before_commit(self, connection: Connection) -> None:
        self.transactions += bool(connection.get_execution_options().get("forebay_writes"))
        self._touch()

    def _touch(self) -> None:
        with self._lock:
            if self._is_acting:
                return
            self.count += 1
            if self.count in self.before:
                self._is_acting = True
                self.before[self.count]()
                self._is_acting = False
