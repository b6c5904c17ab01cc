"""ServedTimes: which times of rows are sent with their features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from forebay.config.specs.datasets import source_of
from forebay.config.specs.feeds import source_feeds
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec


class ServedTimes(NamedTuple):
    """Each is a column that executors serve, if a source declares what it is computed from.

    event_times: when the event happened. waits: from the event to its publication in a stream.
    """

    event_times: bool = False
    waits: bool = False

    @classmethod
    def of(cls, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> Self:
        """The times that a pipeline's sources declare. A model that only counts rows reads none."""
        if pipeline.model.kind == "count":
            return cls()
        feeds = source_feeds(pipeline, sources)
        dated = {
            feed for name, feed in feeds.items() if sources[source_of(name)].event_time is not None
        }
        return cls(bool(dated), "stream" in dated)


NO_TIMES = ServedTimes()
