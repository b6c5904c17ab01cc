"""Commits positions to the storage after a seal (Kafka offsets), never ahead of the seal.

It runs in a separate thread, so that a slow broker delays neither steps nor leases; only the end
of a window waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forebay.datatasks.sources.common.contract.base import Commits
from forebay.errors import InfrastructureError
from forebay.executors.driver.window import ServedWindow
from forebay.executors.wire.messages import Progress
from forebay.system.liveness import Activity, progressed, waiting

RETRY_SECONDS = 0.5
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seal:
    number: int
    window: ServedWindow
    progress: Progress


class SealCommitter:
    """Commits the newest seal; an older one that was not committed yet is skipped."""

    def __init__(
        self, group: Callable[[str], str], openers: Mapping[str, Callable[[], Commits]]
    ) -> None:
        """`openers` open the sources whose storage stores positions, by the name of each use.

        group: the name under which the positions of a use are stored.
        """
        self._group = group
        self._openers = openers
        self._sources: dict[str, Commits] = {}
        self._changed = threading.Condition()
        self._newest: _Seal | None = None
        self._number = self._done = 0
        self._trouble = ""
        self._stopped = False
        self._thread: threading.Thread | None = None

    def submit(self, window: ServedWindow, progress: Progress) -> int:
        """Commit these positions soon; returns the number to wait for."""
        if not self._openers:
            return 0
        with self._changed:
            self._number += 1
            self._newest = _Seal(self._number, window, progress)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="commits", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return self._number

    def wait(self, number: int, timeout_seconds: float) -> None:
        """Wait until these or newer positions are committed.

        Raises:
            InfrastructureError: when they are not in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._done >= number, timeout_seconds):
                raise InfrastructureError(
                    f"sealed positions could not be committed: {self._trouble or 'no answer yet'}"
                )

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(5.0)

    def _run(self) -> None:
        with Activity("committing offsets"):
            while (seal := self._next()) is not None:
                try:
                    self._commit(seal)
                except Exception as error:  # noqa: BLE001 - reported to whoever waits; tried again
                    _LOG.warning("seal %d cannot be committed yet", seal.number, exc_info=error)
                    self._close_sources()
                    with self._changed:
                        self._trouble = f"{type(error).__name__}: {error}"
                        self._changed.wait_for(lambda: self._stopped, RETRY_SECONDS)
                else:
                    with self._changed:
                        self._done = seal.number
                        self._changed.notify_all()
            self._close_sources()

    def _next(self) -> _Seal | None:
        with waiting(), self._changed:
            self._changed.wait_for(
                lambda: self._stopped or (self._newest and self._newest.number > self._done)
            )
            return None if self._stopped else self._newest

    def _commit(self, seal: _Seal) -> None:
        started = time.monotonic()
        for name, opener in self._openers.items():
            positions = seal.window.data_tasks(name, seal.progress)
            if not positions:
                continue
            if name not in self._sources:
                self._sources[name] = opener()
            self._sources[name].commit(self._group(name), positions)
            progressed()
            took = time.monotonic() - started
            _LOG.info("%s: %d positions committed in %.2f s", name, len(positions), took)

    def _close_sources(self) -> None:
        sources, self._sources = self._sources, {}
        for source in sources.values():
            source.close()
