"""Poisons without a storage."""

from __future__ import annotations

from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.tasks import DataTask, Position, ReadUnit


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
