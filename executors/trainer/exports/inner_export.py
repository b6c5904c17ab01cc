"""Exports the model while its window goes on, so that what serves is as fresh as what trains.

A thread of its own loads a sealed checkpoint into a second learner: steps go on meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from forebay.errors import ExportError, FencedError, InfrastructureError
from forebay.executors.judging.gate import gate_decision
from forebay.executors.model_line.link import InnerExport
from forebay.executors.trainer.exports.export import CheckedExport
from forebay.executors.trainer.window.open_window import OpenWindow
from forebay.executors.trainer.window.parts import TrainerParts
from forebay.executors.trainer.window.sealed_rows import row_times
from forebay.executors.window_files.checkpoints import MODEL_FOLDER, Seal
from forebay.executors.window_files.seal_copies import link_model
from forebay.system.instants import from_us
from forebay.system.liveness import Activity, waiting

# Below the folder of the window.
_FOLDER = "inner_export"
_CLOSE_SECONDS = 5.0
_INSIDE = "inside its window"
_LOG = logging.getLogger(__name__)


@dataclass
class _News:
    """What serves since a moment ago. newest_at: see `InnerExport`."""

    newest_at: datetime | None


class InnerExporter:
    """One export at a time, each of a seal; a store that is away is tried again with the next."""

    def __init__(self, parts: TrainerParts, export: CheckedExport | None) -> None:
        """export: of a learner that nothing else uses; None where only ended windows serve."""
        self._parts, self._export = parts, export
        every = parts.pipeline.job.publish.every
        self._every_seconds = 0.0 if every is None else every.total_seconds()
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None
        self._news: _News | None = None
        self._next_at = 0.0
        self._step = 0
        self._closed = False

    def begin(self, opened: OpenWindow) -> None:
        """A window is opened. What it exported after the step that it continues from is gone."""
        chain = self._parts.chain
        self._step = 0
        if chain.withdraw(opened.request.key, datetime.now(UTC), opened.window_step):
            self._news = _News(None)
        published = None if self._export is None else chain.published()
        since = 0.0
        if published is not None:
            since = (datetime.now(UTC) - published.published_at).total_seconds()
        self._next_at = time.monotonic() + max(0.0, self._every_seconds - since)

    def is_due(self, opened: OpenWindow) -> bool:
        """Whether the model is to be sealed now, for an export.

        Raises:
            ForebayError: when the last export failed, and the next one would too.
        """
        self._tell()
        if self._export is None or not self._parts.reader.grows or self._is_busy:
            return False  # an end that is near exports the window itself
        return opened.window_step > self._step and time.monotonic() >= self._next_at

    def sealed(self, opened: OpenWindow, seal: Seal) -> None:
        """Export this newest seal, beside the steps that follow."""
        folder = opened.store.window_folder / _FOLDER
        link_model(opened.store, folder / MODEL_FOLDER)
        self._next_at, self._step = time.monotonic() + self._every_seconds, seal.window_step
        self._thread = threading.Thread(
            target=self._run, args=(opened, seal, folder), name="inner export", daemon=True
        )
        self._thread.start()

    def finish(self) -> None:
        """The window has ended: on return nothing is exported, and nothing will be.

        Raises:
            ForebayError: as `is_due`.
        """
        if self._thread is not None:
            with waiting():  # the thread that exports is watched itself
                self._thread.join()
        self._tell()

    def close(self) -> None:
        """The trainer ends: what is being exported does not serve any more."""
        self._closed = True
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    @property
    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _tell(self) -> None:
        if self._problem is not None:
            raise self._problem
        news, self._news = self._news, None
        if news is not None:
            self._parts.progress.serves(news.newest_at)

    def _run(self, opened: OpenWindow, seal: Seal, folder: Path) -> None:
        with Activity("exporting the model of a window that goes on"):
            try:
                self._publish(opened, seal, folder)
            except Exception as error:  # noqa: BLE001 - raised by the thread that trains
                is_final = isinstance(error, FencedError | ExportError)
                if is_final or not isinstance(error, InfrastructureError):
                    self._problem = error
                else:
                    _LOG.warning("the model of step %d does not serve: %s", seal.step, error)

    def _publish(self, opened: OpenWindow, seal: Seal, folder: Path) -> None:
        parts, key = self._parts, seal.window
        published = parts.chain.published()
        if self._export is None or published is None or published.pinned:
            return
        variant, words = self._chosen(opened)
        with parts.progress.phase("load"):
            self._export.learner.load(folder / MODEL_FOLDER)
        self._export.write(folder / "saved_model", key, variant)
        stored = parts.archive.put_export(
            key, seal.generation, seal.window_step, folder / "saved_model"
        )
        export = InnerExport(
            window=key,
            generation=seal.generation,
            step=seal.window_step,
            start=opened.request.start,
            end=opened.request.end,
            newest_at=self._newest(seal),
            exported_at=datetime.now(UTC),
            stored=stored,
        )
        if self._closed:
            return
        reason = parts.chain.publish_inside(export, seal.parent, words)
        _LOG.info("window %s, step %d: %s", key, seal.window_step, reason or "serves")
        if not reason:
            self._news = _News(export.newest_at)

    def _chosen(self, opened: OpenWindow) -> tuple[str | None, str]:
        """The variant that serves, and why: as the gate of the last ended window decided."""
        before = opened.parent
        decision = None if before is None else gate_decision(self._parts.chain, before)
        if decision is None:
            return None, _INSIDE
        return decision.variant, f"{_INSIDE}, {decision.variant} as the gate decided last"

    def _newest(self, seal: Seal) -> datetime | None:
        streams = self._parts.progress.streams
        times = row_times(seal.progress)
        newest = [last for name, (_, last) in times.items() if name in streams]
        return from_us(max(newest)) if newest else None
