"""What a trainer reports while it runs: counts, and seconds per phase."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import numpy as np

from forebay.datatasks.tasks import TaskProgress
from forebay.executors.job.measures import PhaseSeconds, Progress
from forebay.executors.job.request import WindowRequest
from forebay.executors.link.protocol import RoleLink
from forebay.executors.trainer.freshness import Freshness
from forebay.executors.window_files.checkpoints import Seal
from forebay.executors.window_files.steps import Counts
from forebay.system.clock import utc_now
from forebay.system.instants import to_us
from forebay.system.liveness import ActivityState, doing

WRITE_EVERY_SECONDS = 0.2
# Phases that may trace and compile for minutes in a library, or load and save a large model.
_COMPUTING = frozenset({"load", "train", "seal", "export", "check"})


class ProgressReporter:
    """Collects counts and phase times; writes them a few times a second."""

    def __init__(
        self,
        link: RoleLink,
        source_names: list[str],
        windows_total: int,
        streams: Sequence[str] = (),
        slo_seconds: float | None = None,
    ) -> None:
        """Phase times of an earlier trainer of the same job are added to.

        streams: those of the sources that feed the stream. slo_seconds: see `Freshness`.
        """
        earlier = link.reported()
        self._link = link
        self._names = source_names
        self._rows = np.zeros(len(source_names), dtype=np.int64)
        self._phases = PhaseSeconds(earlier.phases_seconds if earlier else None)
        self._report = Progress(windows_total=windows_total, pid=os.getpid())
        self._window_seconds = 0.0
        self._written = 0.0
        self._written_rows = 0
        self._rate = 0.0
        self.streams = streams
        self._freshness = Freshness(streams, slo_seconds)
        self._slo_seconds = slo_seconds

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time inside to a phase. Entering a new phase counts as progress."""
        state: ActivityState = "computing" if name in _COMPUTING else "working"
        with self._phases.phase(name), doing(name, state):
            yield

    def begin(
        self,
        window: WindowRequest,
        position: int,
        step: int,
        seal: Seal | None = None,
        sealed_by: str | None = None,
        *,
        is_open: bool = False,
    ) -> None:
        """A window starts, or continues from a seal. sealed_by: the runtime, if it was another."""
        resumed = ""
        if seal is not None and sealed_by is not None:
            resumed = f"resumed from step {seal.window_step:,}, sealed by {sealed_by}"
        self._window_seconds = (window.end - window.start).total_seconds()
        self._freshness = Freshness(self.streams, self._slo_seconds)
        self._write(
            force=True,
            window=window.key,
            windows_done=position,
            step=step,
            sealed_step=step,
            sealed_at=0.0 if seal is None else seal.sealed_at.timestamp(),
            resumed=resumed,
            is_open=is_open,
            lag_seconds=self._window_seconds,
        )

    def stepped(self, counts: Counts, into_seconds: float, step: int) -> float:
        """After one minibatch, so far into the window; returns the seconds of data left."""
        self._rows += counts
        lag_seconds = max(0.0, self._window_seconds - into_seconds)
        self._write(force=False, step=step, lag_seconds=lag_seconds)
        return lag_seconds

    def used(self, before: Mapping[str, TaskProgress], after: Mapping[str, TaskProgress]) -> None:
        """See `Freshness.used`."""
        self._freshness.used(before, after, to_us(utc_now()))

    def sealed(self, seal: Seal) -> None:
        self._write(force=True, sealed_step=seal.step, sealed_at=seal.sealed_at.timestamp())

    def serves(self, newest_at: datetime | None) -> None:
        """What serves has changed inside a window. newest_at: see `InnerExport`."""
        newest_us = 0 if newest_at is None else to_us(newest_at)
        self._write(force=True, served_at=time.time(), served_newest_us=newest_us)

    def finished(self, window: str) -> None:
        done = self._report.windows_done + 1
        self._write(force=True, window=window, windows_done=done, lag_seconds=0.0)

    def _write(self, *, force: bool, **news: object) -> None:
        """Take over news of the report, and write it if it is time."""
        self._report = self._report.model_copy(update=news)
        now = time.monotonic()
        elapsed = now - self._written
        if not force and elapsed < WRITE_EVERY_SECONDS:
            return
        total = int(self._rows.sum())
        if elapsed >= WRITE_EVERY_SECONDS:
            self._rate = (total - self._written_rows) / elapsed if self._written else 0.0
            self._written, self._written_rows = now, total
        latest = {
            "reported_at": time.time(),
            "rows": dict(zip(self._names, self._rows.tolist(), strict=True)),
            "rows_per_second": round(self._rate, 1),
            "phases_seconds": self._phases.seconds(),
            "lags": self._freshness.lags(),
        }
        self._link.report(self._report.model_copy(update=latest))
