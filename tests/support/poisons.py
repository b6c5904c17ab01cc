"""Poisons without a storage."""

from __future__ import annotations

from pathlib import Path

from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.tasks import DataTask, Position, ReadUnit
from forebay.executors.driver.hazards import Hazards
from forebay.executors.job.folder import JobFolder


def poison(of: DataTask, offset: int) -> Poison:
    unit = ReadUnit(
        first=Position(offset, 0),
        end=Position(offset + 1, 0),
        location={"topic": "clicks", "partition": 0, "offset": offset},
    )
    return poison_of(of, unit)


def poison_of(of: DataTask, unit: ReadUnit) -> Poison:
    reason = "the process that read it was ended by SIGABRT"
    return Poison(source=of.source, task_id=of.task_id, unit=unit, reason=reason)


def no_hazards(folder: Path) -> Hazards:
    """Nothing is known to kill; what is found goes below a folder."""
    return Hazards(JobFolder(folder / "job").suspicions, lambda _window, _generation: folder)
