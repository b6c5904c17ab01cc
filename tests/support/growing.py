"""A line that follows a stream: hours that pass in seconds, and rows that are published meanwhile.

The clock is set (FOREBAY_CLOCK): an hour of it takes `3600 / rate` seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from forebay.datatasks.sources.kafka.producer import publish_batches
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.paths import Home
from support.independent import log_sums, parquet_sums
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
HOUR = timedelta(hours=1)
BEGIN = DAY + HOUR + timedelta(minutes=10)


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
                minutes = min(minutes, (end - now) // timedelta(minutes=1))
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


@contextmanager
def publishing(followed: Following, hours: int) -> Iterator[None]:
    """Rows are published until a moment before the dataset's end, that hour of the day."""
    end = DAY + hours * HOUR
    followed.project.pipeline["dataset"]["end"] = f"{end:%Y-%m-%dT%H:%M}"
    followed.project.write_pipeline()
    until = end - timedelta(minutes=2)
    thread = threading.Thread(target=followed.publish_until, args=(until, some_rows))
    thread.start()
    try:
        yield
    finally:
        thread.join(120)


def links_of(followed: Following) -> list[Link]:
    return list(ModelChain(Home(followed.project.home), "ads").links())


def require_exact(followed: Following, hours: int) -> None:
    """Each row of the log once, and the history of these hours: by the model's own sums."""
    links = links_of(followed)
    assert [link.window for link in links] == [f"2026-03-02T{at:02}" for at in range(1, hours)]
    newest = links[-1].seen
    assert newest["clicks"].model_dump() == log_sums(followed.project.log, 0, 2**62)
    assert newest["clicks"].rows == followed.published
    first, end = (f"2026-03-01 {at:02}:00:00+00" for at in (1, hours))
    expected = parquet_sums(followed.project.files, f"\"at\" >= '{first}' and \"at\" < '{end}'")
    assert newest["history"].model_dump() == expected
    assert all(link.trained("clicks").rows for link in links)
