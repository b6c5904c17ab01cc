"""Copies seals of a window in training to the store, for another host to continue from.

It runs in a separate thread, so that neither a large model nor a slow store delays a step. One copy
at a time: the newest of the seals made meanwhile is next.
"""

from __future__ import annotations

import logging
import threading
import time

from forebay.errors import FencedError, InfrastructureError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import StoredSeal
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.executors.window_files.checkpoints import CheckpointStore
from forebay.executors.window_files.seal_copies import copy_seal, place_seal, remove_copy
from forebay.home.database.open import database_of
from forebay.system.liveness import Activity, waiting

# Between the starts of two copies. Another host takes a window over after the same time.
PAUSE_SECONDS = 30.0
_LOG = logging.getLogger(__name__)


class SealCopier:
    """Copies seals of one trainer process. It does nothing if no other host could continue."""

    def __init__(
        self,
        chain: ModelChain,
        archive: WindowArchive,
        model_fingerprint: str,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._chain = chain
        self._archive = archive
        self._model_fingerprint = model_fingerprint
        self._pause_seconds = pause_seconds
        self._is_shared = database_of(chain.home).shared
        self._changed = threading.Condition()
        self._waiting: CheckpointStore | None = None
        self._is_copying = self._closed = False
        self._next_at = 0.0
        self._problem: Exception | None = None
        self._is_away = False
        self._thread: threading.Thread | None = None

    def bring(self, window: str, generation: int, checkpoints: CheckpointStore) -> None:
        """If a window has no seal here, fetch the one that another host copied to the store.

        Raises:
            DataError: when that is damaged; the message says what to do.
            InfrastructureError: when database, store or disk fail.
        """
        if not self._is_shared or checkpoints.newest() is not None:
            return
        found = self._chain.seal(window, generation)
        if found is None:
            return
        if found.model_fingerprint != self._model_fingerprint:
            _LOG.info("window %s starts over: its seal is of a different model", window)
            return
        place_seal(self._archive.seal(found), checkpoints)

    def sealed(self, checkpoints: CheckpointStore) -> None:
        """There is a new seal: it is copied soon, unless an even newer one comes first.

        Raises:
            FencedError: when another job was found to train the line.
        """
        if not self._is_shared:
            return
        with self._changed:
            self._raise_problem()
            self._waiting = checkpoints
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="seals", daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """The window has ended: on return nothing is copied, and nothing will be.

        Raises:
            FencedError: when another job was found to train the line.
        """
        with self._changed:
            self._waiting = None
            with waiting():  # the thread that copies is watched itself
                self._changed.wait_for(lambda: not self._is_copying)
            self._raise_problem()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _run(self) -> None:
        with Activity("copying a seal to the store"):
            while self._problem is None and (checkpoints := self._next()) is not None:
                try:
                    self._copy(checkpoints)
                except Exception as error:  # noqa: BLE001 - reported, or raised by the trainer
                    self._failed(error)
                with self._changed:
                    self._is_copying = False
                    self._changed.notify_all()

    def _next(self) -> CheckpointStore | None:
        with waiting(), self._changed:
            while not self._closed:
                left = self._next_at - time.monotonic()
                if self._waiting is None:
                    self._changed.wait()
                elif left > 0:
                    self._changed.wait(left)
                else:
                    checkpoints, self._waiting = self._waiting, None
                    self._is_copying = True
                    self._next_at = time.monotonic() + self._pause_seconds
                    return checkpoints
            return None

    def _copy(self, checkpoints: CheckpointStore) -> None:
        seal, copy = copy_seal(checkpoints)
        stored = self._archive.put_seal(seal.window, seal.generation, copy)
        remove_copy(checkpoints)
        self._chain.record_seal(
            StoredSeal(
                window=seal.window,
                generation=seal.generation,
                step=seal.window_step,
                model_fingerprint=self._model_fingerprint,
                stored=stored,
            )
        )
        self._is_away = False
        _LOG.info("window %s: the seal of step %d is in the store", seal.window, seal.window_step)

    def _failed(self, error: Exception) -> None:
        """Training continues without a copy; a bug and a newer trainer end it."""
        if isinstance(error, FencedError) or not isinstance(error, InfrastructureError):
            self._problem = error
        elif not self._is_away:
            self._is_away = True
            _LOG.warning(
                "a seal was not copied to the store: %s. Training continues, and the next seal is "
                "tried; until then another host would continue from an older one",
                error,
            )
