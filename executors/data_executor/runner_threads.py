"""Threads that read tasks, kept for the next one: what a thread has freed it finds again.

Arrow's allocator keeps memory by thread. A new thread for each task would have its pages given and
cleared by the kernel again, which costs as much as to decode a few columns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

# Those that wait for work; as many more as there is work are started, and end with it.
IDLE_MAX = 8


class RunnerThreads:
    """Runs each piece of work at once, in a thread that has none; no work waits for another."""

    def __init__(self, name: str) -> None:
        """No thread is started yet. name: of the threads."""
        self._name = name
        self._changed = threading.Condition()
        self._work: list[Callable[[], None]] = []
        self._idle = 0
        self._closed = False

    def start(self, work: Callable[[], None]) -> None:
        """Begin a piece of work, which says itself what goes wrong in it.

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
        """Idle threads end, and others with their work."""
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
