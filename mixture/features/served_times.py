"""ServedTimes: which times of rows travel beside their features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from forebay.config.feeds import source_feeds
from forebay.config.pipelines import PipelineSpec
from forebay.config.source_uses import source_of
from forebay.config.sources import SourceSpec


class ServedTimes(NamedTuple):
    """Each is a column of what executors serve, where a source declares what it comes from.

    event_times: when the event happened. waits: from there to the publication in a stream.
    label_ages: from there to when a batch row's label was known; of each label.
    """

    event_times: bool = False
    waits: bool = False
    label_ages: bool = False

    @classmethod
    def of(cls, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> Self:
        """Those that a pipeline's sources declare. A model that only counts rows reads none."""
        if pipeline.model.kind == "count":
            return cls()
        feeds = source_feeds(pipeline, sources)
        dated = {
            feed for name, feed in feeds.items() if sources[source_of(name)].event_time is not None
        }
        labels = pipeline.dataset.targets.values()
        ages = any(label.known_at is not None for label in labels) and "batch" in dated
        return cls(bool(dated), "stream" in dated, ages)


NO_TIMES = ServedTimes()
