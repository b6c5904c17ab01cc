"""What a job's processes used over an interval, kept beside the job: for people and for policies.

A supervisor writes a line every few seconds. The file stays small: when it is full, every second
line goes, and intervals are twice as far apart from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from forebay.errors import DataError
from forebay.executors.roles.table import DATA
from forebay.system.files.durable import read_lines
from forebay.system.message import Message

MEASURES_NAME = "measures.jsonl"
# Of a trainer's time: below this, more rows would not help it.
_WAITS_LITTLE = 0.1
_STORES_MUCH = 0.5
# Cores of a data executor: one decodes with one thread at a time where there is one partition.
_DECODES_MUCH = 0.7
_STORING = ("seal", "export", "store", "check", "load")


class ProcessMeasure(Message):
    """Means over the interval. None: the plane cannot know.

    throttled_share: of the interval, in which the process was held back by its quota.
    """

    cpu_cores: float | None = None
    throttled_share: float | None = None
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None


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
        busiest = max(executors, key=lambda name: executors[name], default="")
        cores = executors.get(busiest, 0.0)
        if cores >= _DECODES_MUCH:
            return Bottleneck("decoding", f"{busiest} uses {cores:.1f} cores; {waits:.0%} waiting")
        return Bottleneck("storage", f"the trainer waits {waits:.0%}; executors use {cores:.1f}")


class Bottleneck(NamedTuple):
    """One word, and the figure that it rests on."""

    word: str
    figure: str


def newest_measure(job_dir: Path) -> Measure | None:
    """None before the first.

    Raises:
        DataError: when the file is damaged.
    """
    path = job_dir / MEASURES_NAME
    lines = read_lines(path) if path.exists() else []
    try:
        return Measure.model_validate_json(lines[-1]) if lines else None
    except ValidationError as error:
        raise DataError(f"{path} is damaged: remove it, the job begins a new one") from error


def shares(
    before: Mapping[str, float], now: Mapping[str, float], seconds: float
) -> dict[str, float]:
    """How much of an interval each counter of seconds grew; one that was reset began at 0."""
    grown = {
        name: value - (before.get(name, 0.0) if before.get(name, 0.0) <= value else 0.0)
        for name, value in now.items()
    }
    return {name: round(value / seconds, 4) for name, value in grown.items() if value > 0}
