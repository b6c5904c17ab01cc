"""Tasks and poisons without a storage behind them."""

from __future__ import annotations

from datetime import UTC, datetime

from forebay.datatasks.sources.common.read_units import Poison
from forebay.datatasks.tasks import DataTask, Position, ReadUnit

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def task(number: int = 0, source: str = "clicks") -> DataTask:
    return DataTask(
        task_id=f"{source}/{number}",
        source=source,
        window="2026-03-01",
        generation=2,
        hour=0,
        partition="",
        ranges=(),
        rows=None,
        cut=False,
        data_from=DAY,
        data_to=DAY,
    )


def poison(of: DataTask, offset: int) -> Poison:
    unit = ReadUnit(
        first=Position(offset, 0),
        end=Position(offset + 1, 0),
        location={"topic": "clicks", "partition": 0, "offset": offset},
    )
    reason = "the process that read it was ended by SIGABRT"
    return Poison(source=of.source, task_id=of.task_id, unit=unit, reason=reason)
