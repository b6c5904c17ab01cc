"""What a job's trainer reports, and what its processes used over an interval.

A supervisor writes a line every few seconds. The file stays small: when it is full, every second
line goes, and intervals are twice as far apart from then on.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, ValidationError

from forebay.errors import DataError
from forebay.executors.roles.table import DATA
from forebay.system.clock import utc_now
from forebay.system.files.durable import append_lines, read_lines, write_atomically
from forebay.system.instants import to_us
from forebay.system.message import Message

# Of a trainer's time: below this, more rows would not help it.
_WAITS_LITTLE = 0.1
_STORES_MUCH = 0.5
# Cores of a data executor: one decodes with one thread at a time where there is one partition.
_DECODES_MUCH = 0.7
_STORING = ("seal", "export", "store", "check", "load")


def since(instant_us: int) -> float:
    """Seconds until now."""
    return max(0.0, (to_us(utc_now()) - instant_us) / 1e6)


class StreamLag(Message):
    """How far training is behind a stream, of the rows of the open window so far.

    newest_us: when the newest row that was used was published, in microseconds since 1970. rows:
    how many were used. p50_seconds, p99_seconds: of them, from their publication to their step.
    late_share: of those that took longer than `job.continuous.lag_slo`; None without one.
    """

    newest_us: int
    rows: int
    p50_seconds: float
    p99_seconds: float
    late_share: float | None = None

    @property
    def text(self) -> str:
        """Until now, and over the window."""
        now = since(self.newest_us)
        late = "" if self.late_share is None else f", {self.late_share:.1%} too late"
        return f"{now:,.1f} s (p50 {self.p50_seconds:,.1f}, p99 {self.p99_seconds:,.1f}{late})"


class Progress(Message):
    """A trainer's report, rewritten a few times a second.

    lag_seconds: time of data in the open window that is not trained yet.
    rows: rows that this process trained, by source; counts are proven by the model, not by this.
    sealed_step: the step of the newest sealed checkpoint; 0 before the first one.
    resumed: where the open window was taken over, for people; empty if it was not.
    sealed_at, reported_at: when that was sealed, and when this was written, as `time.time` counts;
    0 where that is not known. lags: of streams whose storage says when rows were published.
    is_open: whether the window goes on, or did when it was begun. served_at: when what serves was
    last changed inside a window, as `time.time` counts; 0 if it was not. served_newest_us: when the
    newest row was published that the model has learnt which serves then; 0 if that is not known.
    """

    window: str = ""
    windows_done: int = 0
    windows_total: int = 0
    step: int = 0
    sealed_step: int = 0
    sealed_at: float = 0.0
    resumed: str = ""
    reported_at: float = 0.0
    rows: dict[str, int] = Field(default_factory=dict)
    rows_per_second: float = 0.0
    lag_seconds: float = 0.0
    pid: int = 0
    phases_seconds: dict[str, float] = Field(default_factory=dict)
    lags: dict[str, StreamLag] = Field(default_factory=dict)
    is_open: bool = False
    served_at: float = 0.0
    served_newest_us: int = 0

    @property
    def lag_words(self) -> str:
        """By stream, of a window that goes on; empty for any other."""
        lags = self.lags if self.is_open else {}
        words = [f"{name} {lag.text}" for name, lag in lags.items()]
        if self.is_open and self.served_newest_us:
            words.append(f"the model that serves {since(self.served_newest_us):,.0f} s")
        return ", ".join(words)


class ProcessMeasure(Message):
    """Means over the interval. None: the plane cannot know.

    throttled_share: of the interval, in which the process was held back by its quota.
    phases: what its threads did, in shares of the interval; several threads may do the same.
    """

    cpu_cores: float | None = None
    throttled_share: float | None = None
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None
    phases: dict[str, float] = Field(default_factory=dict)


class PhaseSeconds:
    """How long threads of one process did what, since its start."""

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        """before: of earlier processes, to add to."""
        self._seconds = defaultdict(float, before or {})
        self._lock = threading.Lock()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - began
            with self._lock:
                self._seconds[name] += spent

    def seconds(self) -> dict[str, float]:
        with self._lock:
            return {name: round(spent, 3) for name, spent in self._seconds.items()}


class Measure(Message):
    """One interval. phases: shares of it that the trainer spent; what is missing is its own work.

    rows_per_second: by source, as the trainer took them.
    """

    at: datetime
    interval_seconds: float
    processes: dict[str, ProcessMeasure]
    phases: dict[str, float]
    rows_per_second: dict[str, float]

    @property
    def bottleneck(self) -> Bottleneck:
        """What more of would make the job faster, as far as these figures tell."""
        waits = self.phases.get("wait", 0.0)
        stores = sum(self.phases.get(name, 0.0) for name in _STORING)
        if not self.phases:
            return Bottleneck("starting", "no trainer has reported yet")
        if stores > _STORES_MUCH:
            return Bottleneck("storing", f"{stores:.0%} of the trainer's time")
        if waits < _WAITS_LITTLE:
            trains = self.phases.get("train", 0.0)
            return Bottleneck("training", f"{trains:.0%} of the time; it waits {waits:.0%}")
        executors = {
            name: each.cpu_cores
            for name, each in self.processes.items()
            if name.startswith(f"{DATA.name}-") and each.cpu_cores is not None
        }
        if not executors:
            return Bottleneck(
                "reading", f"the trainer waits {waits:.0%}; what reads is not measured"
            )
        busiest = max(executors, key=lambda name: executors[name])
        cores = executors[busiest]
        if cores >= _DECODES_MUCH:
            return Bottleneck("decoding", f"{busiest} uses {cores:.1f} cores; {waits:.0%} waiting")
        return Bottleneck("storage", f"the trainer waits {waits:.0%}; executors use {cores:.1f}")


class Bottleneck(NamedTuple):
    """One word, and the figure that it rests on."""

    word: str
    figure: str


class MeasuresFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def newest(self) -> Measure | None:
        """None before the first.

        Raises:
            DataError: when the file is damaged.
        """
        lines = read_lines(self._path) if self._path.exists() else []
        try:
            return Measure.model_validate_json(lines[-1]) if lines else None
        except ValidationError as error:
            raise DataError(
                f"{self._path} is damaged: remove it, the job begins a new one"
            ) from error

    def append(self, measure: Measure) -> None:
        """Raises InfrastructureError when the disk does not take it."""
        append_lines(self._path, measure.model_dump_json(exclude_none=True) + "\n")

    def halve(self) -> int:
        """Keep the newest line and every second one before it; how many those are."""
        kept = read_lines(self._path)[::-2][::-1]
        write_atomically(self._path, "".join(f"{line}\n" for line in kept))
        return len(kept)


def shares(
    before: Mapping[str, float], now: Mapping[str, float], seconds: float
) -> dict[str, float]:
    """How much of an interval each counter of seconds grew; one that was reset began at 0."""
    grown = {
        name: value - (before.get(name, 0.0) if before.get(name, 0.0) <= value else 0.0)
        for name, value in now.items()
    }
    return {name: round(value / seconds, 4) for name, value in grown.items() if value > 0}
