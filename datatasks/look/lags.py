"""How far a pipeline is behind the streams that it reads, by what their storage keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from forebay.config.specs.base import duration_words
from forebay.config.specs.datasets import source_of, stream_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import (
    Commits,
    Describes,
    Description,
    PartitionLag,
)
from forebay.datatasks.sources.common.values.far_times import are_far, far_words
from forebay.errors import ForebayError
from forebay.system.instants import to_us
from forebay.system.message import Message
from forebay.system.output.counted import counted


class Lag(Message):
    """How far what is sealed of a partition is behind its end.

    count: what comes after it, in `unit`s. seconds: the age of the oldest; None where nobody
    knows. problem: why nothing of the source is known; empty where something is. wrong_time: what
    is wrong with the time of the oldest, or of a table's newest row, if anything is.
    """

    source: str
    partition: str = ""
    count: int = 0
    unit: str = ""
    seconds: float | None = None
    problem: str = ""
    wrong_time: str = ""

    @property
    def text(self) -> str:
        if self.problem:
            return f"{self.source}: its lag is not known: {self.problem}"
        if self.wrong_time and not self.partition:
            return f"{self.source}: the time of its newest row is wrong ({self.wrong_time})"
        place = f"{self.source}, partition {self.partition}"
        if not self.count:
            return f"{place}: nothing after the sealed position"
        age = timedelta(seconds=self.seconds or 0)
        oldest = "" if self.seconds is None else f", the oldest {duration_words(age)} old"
        if self.wrong_time:
            oldest = f"; the oldest one's own time is wrong ({self.wrong_time})"
        behind = counted(self.count, self.unit.removesuffix("s"))
        return f"{place}: {behind} after the sealed position{oldest}"


def commit_group(pipeline: str, use: str) -> str:
    """The name under which the sealed positions of a use of a source are committed to its storage.

    Streams that read the same source are at different positions of it.
    """
    stream = stream_of(use)
    return f"forebay.{pipeline}.{stream}" if stream else f"forebay.{pipeline}"


def lags_of(
    root: Path, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec], now: datetime
) -> list[Lag]:
    """The partitions of each source whose storage keeps positions, and tables with wrong times.

    Asks each of them.
    """
    found = []
    for name in pipeline.use_names:
        try:
            with closing(open_source(sources[source_of(name)], root)) as source:
                if source.bounded and isinstance(source, Describes):
                    wrong = newest_problem(source.spec, source.describe(), now)
                    found += [Lag(source=name, wrong_time=wrong)] if wrong else []
                elif not source.bounded and isinstance(source, Commits):
                    lags = source.lag(commit_group(pipeline.name, name))
                    found += [_lag(name, source.offset_unit, each, now) for each in lags]
        except ForebayError as error:
            found.append(Lag(source=name, problem=str(error)))
    return found


def newest_problem(spec: SourceSpec, found: Description, now: datetime) -> str:
    """What is wrong with the time of a table's newest row; empty where nothing is."""
    stored = found.columns.get(spec.event_time or "", "")
    return _wrong_time(found.newest, now, stored)


def in_vain(lags: Sequence[Lag]) -> str:
    """What to do in place of waiting for rows, where some have wrong times; else an empty text."""
    names = ", ".join(dict.fromkeys(each.source for each in lags if each.wrong_time))
    return f"correct the times of {names}: no window has such rows" if names else ""


def _lag(source: str, unit: str, found: PartitionLag, now: datetime) -> Lag:
    wrong = _wrong_time(found.oldest, now)
    seconds = None
    if found.oldest is not None and not wrong:
        seconds = max(0.0, (now - found.oldest).total_seconds())
    facts = {"partition": found.partition, "count": found.count, "unit": unit, "seconds": seconds}
    return Lag.model_validate(facts | {"source": source, "wrong_time": wrong})


def _wrong_time(instant: datetime | None, now: datetime, stored: str = "") -> str:
    if instant is None or not are_far(np.array([to_us(instant)]), to_us(now)).all():
        return ""
    return far_words(to_us(instant), to_us(now), stored)
