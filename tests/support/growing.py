"""A line that follows a stream: hours that pass in seconds, and rows that are published meanwhile.

The clock is set (FOREBAY_CLOCK): an hour of it takes `3600 / rate` seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from forebay.datatasks.sources.kafka.producer import publish_batches
from forebay.datatasks.sources.log.writer import LogWriter
from support.projects import (
    Project,
    Topic,
    ads_pipeline,
    declared_project,
    rows_of_day,
    topic_source,
    write_history,
)

DAY = datetime(2026, 3, 2, tzinfo=UTC)


def growing_pipeline(slice_seconds: int = 60, **job: Any) -> dict[str, Any]:
    """Hourly windows over one day of history before and a stream."""
    continuous = {"slice": f"{slice_seconds}s", "seal": "1s"}
    pipeline = ads_pipeline(process="continuous", continuous=continuous, **job)
    pipeline["dataset"] |= {"window": "1h", "start": "2026-03-02T01:00"}
    return pipeline


@dataclass
class Following:
    """begin: what the clock says when it is set."""

    project: Project
    begin: datetime
    rate: float
    published: int = 0
    _anchor: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        clock = f"{self.begin.isoformat()}@{self._anchor}x{self.rate}"
        self.project.environment["FOREBAY_CLOCK"] = clock

    def now(self) -> datetime:
        return self.begin + timedelta(seconds=(time.time() - self._anchor) * self.rate)

    def publish_at(self, instants: Sequence[datetime], rows_of: Callable[[int], pa.Table]) -> None:
        """Publish rows that are stamped with instants of before."""
        writer = LogWriter(self.project.log, 0)
        for number, instant in enumerate(instants):
            batch = rows_of(1_000 + number)
            writer.append(batch, instant)
            self.published += batch.num_rows

    def publish_until(self, end: datetime, rows_of: Callable[[int], pa.Table]) -> None:
        """Publish a few rows in each partition again and again, stamped with the clock.

        In a topic, each tenth message is stamped a few minutes before, and each 25th after.
        """
        number = 0
        while (now := self.now()) < end:
            batch, topic = rows_of(number), self.project.topic
            if topic is None:
                LogWriter(self.project.log, number % 2).append(batch, now)
            else:
                minutes = -7 if number % 10 == 3 else 4 if number % 25 == 7 else 0
                stamp = now + timedelta(minutes=minutes)
                publish_batches(topic.bootstrap, topic.name, [(batch, stamp, number % 2)])
            self.published += batch.num_rows
            number += 1
            time.sleep(0.05)


def following(
    root: Path,
    begin: datetime,
    rate: float,
    rows: int = 2_400,
    topic: Topic | None = None,
    **job: Any,
) -> Following:
    """`rows` of history for the day of 2 March; nothing is published yet."""
    starts = {"starts": "2026-03-02T01:00"}
    project = declared_project(root, growing_pipeline(**job), clicks=starts, topic=topic)
    if topic is not None:
        project.write_source("clicks", topic_source(topic, **starts))
    write_history(project.files, DAY - timedelta(days=1), rows)
    return Following(project, begin, rate)


def some_rows(number: int, rows: int = 20) -> pa.Table:
    """Rows with events of their own; what time they say is of no importance to a log."""
    return rows_of_day(DAY + timedelta(seconds=number), rows, seed=number)
