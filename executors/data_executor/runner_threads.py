"""Threads that read tasks, kept for the next one so that they reuse the memory that they freed.

Arrow's allocator keeps memory by thread. With a new thread for each task, the kernel would map and
clear pages again, which costs as much as decoding a few columns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

# Threads that wait for work; more are started as needed, and end with their work.
IDLE_MAX = 8


class RunnerThreads:
    """Runs each piece of work at once, in an idle or new thread; no work waits for other work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._work: list[Callable[[], None]] = []
        self._idle = 0
        self._closed = False

    def start(self, work: Callable[[], None]) -> None:
        """Begin a piece of work, which reports its own errors.

        Raises:
            RuntimeError: when a thread is needed and cannot be started.
        """
        with self._changed:
            if self._idle > len(self._work):
                self._work.append(work)
                self._changed.notify()
                return
        threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True).start()

    def close(self) -> None:
        """End idle threads now, and the others once their work ends."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            del work  # nothing that it holds outlives it here
            work = self._next()

    def _next(self) -> Callable[[], None] | None:
        """The next piece of work; None when this thread is to end."""
        with self._changed:
            if self._closed or self._idle >= IDLE_MAX:
                return None
            self._idle += 1
            self._changed.wait_for(lambda: self._closed or self._work)
            self._idle -= 1
            return self._work.pop() if self._work else None
