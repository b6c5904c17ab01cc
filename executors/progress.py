"""What a trainer tells about itself while it runs: progress.json and seconds per phase."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from pydantic import Field

from forebay.datatasks.tasks import Wire
from forebay.executors.files import write_atomically
from forebay.executors.job import WindowRequest
from forebay.executors.job_folder import PROGRESS_NAME
from forebay.mixture.minibatch import Minibatch

WRITE_EVERY_SECONDS = 0.2
_HOUR_SECONDS = 3600.0


class Progress(Wire):
    """A trainer's own account, rewritten a few times a second.

    lag_seconds: time of data in the open window that is not trained yet.
    rows: rows that this process trained, by source; the proof of counts is the model, not this.
    """

    window: str = ""
    windows_done: int = 0
    windows_total: int = 0
    step: int = 0
    rows: dict[str, int] = Field(default_factory=dict)
    rows_per_second: float = 0.0
    lag_seconds: float = 0.0
    pid: int = 0
    phases_seconds: dict[str, float] = Field(default_factory=dict)


def read_progress(job_dir: Path) -> Progress | None:
    """The newest account, or None before the first."""
    path = job_dir / PROGRESS_NAME
    return Progress.model_validate_json(path.read_text()) if path.is_file() else None


class ProgressReporter:
    """Collects counts and phase times; writes them a few times a second."""

    def __init__(self, job_dir: Path, source_names: list[str], windows_total: int) -> None:
        """Phases of an earlier trainer of the same job go on adding up."""
        earlier = read_progress(job_dir)
        self._path = job_dir / PROGRESS_NAME
        self._names = source_names
        self._rows = np.zeros(len(source_names), dtype=np.int64)
        self._phases: dict[str, float] = dict(earlier.phases_seconds) if earlier else {}
        self._total = windows_total
        self._pid = os.getpid()
        self._window = ""
        self._done = 0
        self._step = 0
        self._lag_seconds = 0.0
        self._window_seconds = 0.0
        self._written = 0.0
        self._written_rows = 0
        self._rate = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time inside to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self._phases[name] = self._phases.get(name, 0.0) + spent

    def begin(self, window: WindowRequest, position: int, step: int) -> None:
        """A window starts, or goes on from a seal."""
        self._window, self._done, self._step = window.key, position, step
        self._window_seconds = (window.end - window.start).total_seconds()
        self._lag_seconds = self._window_seconds
        self._write(force=True)

    def stepped(self, minibatch: Minibatch, slot: int, step: int) -> None:
        """One minibatch was trained; `slot` is its hour inside the window."""
        self._rows += np.bincount(minibatch.sources, minlength=len(self._names))
        self._step = step
        self._lag_seconds = max(0.0, self._window_seconds - slot * _HOUR_SECONDS)
        self._write(force=False)

    def finished(self, window: str) -> None:
        """A window is trained, linked and counted."""
        self._window = window
        self._done += 1
        self._lag_seconds = 0.0
        self._write(force=True)

    def _write(self, *, force: bool) -> None:
        now = time.monotonic()
        elapsed = now - self._written
        if not force and elapsed < WRITE_EVERY_SECONDS:
            return
        total = int(self._rows.sum())
        if elapsed >= WRITE_EVERY_SECONDS:
            self._rate = (total - self._written_rows) / elapsed if self._written else 0.0
            self._written, self._written_rows = now, total
        progress = Progress(
            window=self._window,
            windows_done=self._done,
            windows_total=self._total,
            step=self._step,
            rows=dict(zip(self._names, self._rows.tolist(), strict=True)),
            rows_per_second=round(self._rate, 1),
            lag_seconds=self._lag_seconds,
            pid=self._pid,
            phases_seconds={name: round(value, 3) for name, value in self._phases.items()},
        )
        write_atomically(self._path, json.dumps(progress.model_dump()))
