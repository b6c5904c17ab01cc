"""How far a pipeline is behind the streams that it reads, by what their storage keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path

from forebay.config.pipelines import PipelineSpec
from forebay.config.source_uses import source_of, stream_of
from forebay.config.sources import SourceSpec
from forebay.datatasks.open_source import open_source
from forebay.datatasks.sources.common.base import PartitionLag
from forebay.errors import ForebayError
from forebay.system.counted import counted
from forebay.system.message import Message


class Lag(Message):
    """How far what is sealed of a partition is behind its end.

    count: what comes after it, in `unit`s. seconds: the age of the oldest; None where nobody
    knows. problem: why nothing of the source is known; empty where something is.
    """

    source: str
    partition: str = ""
    count: int = 0
    unit: str = ""
    seconds: float | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """The same in words."""
        if self.problem:
            return f"{self.source}: its lag is not known: {self.problem}"
        place = f"{self.source}, partition {self.partition}"
        if not self.count:
            return f"{place}: nothing after the sealed position"
        oldest = "" if self.seconds is None else f", the oldest {self.seconds:,.0f} s old"
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
    """The partitions of each source whose storage keeps positions. Asks each of them."""
    found = []
    for name in pipeline.use_names:
        try:
            with closing(open_source(sources[source_of(name)], root)) as source:
                lags = [] if source.bounded else source.lag(commit_group(pipeline.name, name))
                found += [_lag(name, source.offset_unit, each, now) for each in lags]
        except ForebayError as error:
            found.append(Lag(source=name, problem=str(error)))
    return found


def _lag(source: str, unit: str, found: PartitionLag, now: datetime) -> Lag:
    seconds = None if found.oldest is None else max(0.0, (now - found.oldest).total_seconds())
    return Lag(
        source=source, partition=found.partition, count=found.count, unit=unit, seconds=seconds
    )
