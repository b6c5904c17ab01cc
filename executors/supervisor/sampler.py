"""Measures the processes of a job every few seconds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from forebay.errors import DataError, InfrastructureError
from forebay.executors.job.measures import Measure, ProcessMeasure, Progress, shares
from forebay.executors.link.protocol import JobLink
from forebay.executors.planes.base import Usage

INTERVAL_SECONDS = 5.0
LINES_MAX = 2_000
_LOG = logging.getLogger(__name__)


class Sampler:
    """Writes measures beside the job.

    peaks: of memory, in bytes by process, over all its starts.
    """

    def __init__(
        self,
        link: JobLink,
        peaks: Mapping[str, int] | None = None,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        """peaks: those that an earlier supervisor of the same run has seen."""
        self.peaks = dict(peaks or {})
        self._link = link
        self._interval = interval_seconds
        self._at = self._since = time.monotonic()  # of the last try, and of the last measure
        self._lines = 0
        self._usages: dict[str, Usage] = {}
        self._phases: dict[str, dict[str, float]] = {}
        self._progress = Progress()

    def is_due(self) -> bool:
        return time.monotonic() - self._at >= self._interval

    def sample(self, look: Callable[[], Mapping[str, Usage]]) -> None:
        """What cannot be measured or stored now is no reason to end a job: it is logged.

        The next measure is then of the time since the last one.
        """
        self._at = now = time.monotonic()
        seconds = now - self._since
        try:
            usages, progress = look(), self._link.progress() or Progress()
            phases = {name: self._phases_of(name) for name in usages}
            self._store(self._measure(usages, phases, progress, seconds))
        except (OSError, DataError, InfrastructureError) as error:
            _LOG.warning("no measures of the last %.0f s: %s", seconds, error)
            return
        self._since, self._usages, self._progress = now, dict(usages), progress
        self._phases |= phases

    def _phases_of(self, name: str) -> dict[str, float]:
        role, _, index = name.rpartition("-")
        return self._link.process(role, int(index)).phases()

    def _measure(
        self,
        usages: Mapping[str, Usage],
        phases: Mapping[str, dict[str, float]],
        progress: Progress,
        seconds: float,
    ) -> Measure:
        rows = {name: float(count) for name, count in progress.rows.items()}
        rows_before = {name: float(count) for name, count in self._progress.rows.items()}
        return Measure(
            at=datetime.now(UTC),
            interval_seconds=round(seconds, 2),
            processes={
                name: self._process(name, each, phases[name], seconds)
                for name, each in usages.items()
            },
            phases=shares(self._progress.phases_seconds, progress.phases_seconds, seconds),
            rows_per_second=shares(rows_before, rows, seconds),
        )

    def _process(
        self, name: str, now: Usage, phases: Mapping[str, float], seconds: float
    ) -> ProcessMeasure:
        before = self._usages.get(name, Usage(cpu_seconds=0.0, throttled_seconds=0.0))
        highest = max(now.memory_peak_bytes or 0, now.memory_bytes or 0)
        self.peaks[name] = max(highest, self.peaks.get(name, 0))
        return ProcessMeasure(
            cpu_cores=_rate(before.cpu_seconds, now.cpu_seconds, seconds),
            throttled_share=_rate(before.throttled_seconds, now.throttled_seconds, seconds),
            memory_bytes=now.memory_bytes,
            memory_peak_bytes=self.peaks[name],
            phases=shares(self._phases.get(name, {}), phases, seconds),
        )

    def _store(self, measure: Measure) -> None:
        self._link.measures.append(measure)
        self._lines += 1
        if self._lines >= LINES_MAX:
            self._lines, self._interval = self._link.measures.halve(), self._interval * 2


def _rate(before: float | None, now: float | None, seconds: float) -> float | None:
    """Per second; a counter that is lower than before began again at 0."""
    if now is None:
        return None
    grown = now - before if before is not None and before <= now else now
    return round(grown / seconds, 3)
