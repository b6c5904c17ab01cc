"""Feeds: which rows are history (`batch`) and which are fresh (`stream`), and who trains on them.

By default bounded sources are history and unbounded ones fresh; a stream may declare its feed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

from forebay.config.specs.datasets import Feed, StreamSpec
from forebay.config.specs.labels import delay_of
from forebay.config.specs.models import Paradigm
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import HOUR
from forebay.errors import ConfigError

# What a minibatch belongs to: the warm start, its last hours, for which history has no rows yet,
# or a window after it.
Phase = Literal["warm_start", "warm_start_end", "window"]


def stream_feed(name: str, stream: StreamSpec, sources: Mapping[str, SourceSpec]) -> Feed:
    """The declared feed of a stream, or else the one that follows from its sources' kinds.

    Raises:
        ConfigError: when the kinds disagree and the stream declares no feed. `forebay check`
            reports it, and no command runs a pipeline that has a problem.
    """
    if stream.feed is not None:
        return stream.feed
    bounded = [each for each in stream.sources if kind_named(sources[each].kind).bounded]
    unbounded = [each for each in stream.sources if each not in bounded]
    if bounded and unbounded:
        raise ConfigError(
            f"stream {name!r} mixes bounded ({', '.join(bounded)}) and unbounded "
            f"({', '.join(unbounded)}) sources: write `feed: batch` or `feed: stream`"
        )
    return "batch" if bounded else "stream"


def source_feeds(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> dict[str, Feed]:
    """The feed of each source use, by the use's name."""
    streams = pipeline.dataset.streams.items()
    feeds = {name: stream_feed(name, stream, sources) for name, stream in streams}
    return {use.name: feeds[use.stream] for use in pipeline.uses}


def has_stream(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> bool:
    return "stream" in source_feeds(pipeline, sources).values()


def unread_hours(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> int:
    """How many hours before a window's end have rows in the stream but none in history yet.

    The smallest batch offset minus the largest stream offset; 0 if either feed is absent.
    """
    offsets: dict[Feed, list[int]] = {"batch": [], "stream": []}
    for name, stream in pipeline.dataset.streams.items():
        offsets[stream_feed(name, stream, sources)].append(stream.offset // HOUR)
    if not offsets["batch"] or not offsets["stream"]:
        return 0
    return max(0, min(offsets["batch"]) - max(offsets["stream"]))


def learns_from(paradigm: Paradigm, feed: Feed, phase: Phase) -> bool:
    """Whether a paradigm trains on minibatches of this feed.

    `batch_then_stream` trains on batch rows during the warm start, on stream rows too in its last
    hours, and on stream rows alone in every later window. The batch rows of those last hours arrive
    only after the warm start; without the stream rows it would never train on them. Without a warm
    start it equals `stream`.
    """
    if paradigm in ("mixed", "mixture"):
        return True
    if paradigm == "batch_then_stream":
        return phase == "warm_start_end" or feed == ("batch" if phase == "warm_start" else "stream")
    return feed == paradigm


# Minibatches that span more hours are rare: only with few rows a day.
_TOGETHER_MAX = 6
_PART_OF_OFFSET = 4


def joined_labels(pipeline: PipelineSpec) -> list[str]:
    """Labels for which a variant learns how late they are in the stream, see `label_key`."""
    if pipeline.model.kind != "towers":
        return []
    return [
        pipeline.dataset.label_key(name)
        for name, label in pipeline.dataset.targets.items()
        if any(delay_of(label, variant) != "none" for variant in pipeline.train.variants)
    ]


def hours_together(pipeline: PipelineSpec) -> int | None:
    """How many hours after a minibatch's first row its other rows may be; None: any number.

    With a bound, a batch row can also be matched with its copy in the stream of its own window:
    rows served this many hours plus two before it have arrived by then, whatever was killed
    meanwhile. Only a single data executor serves its rows in that order. Hourly windows contain no
    such copies, which are in earlier windows, but the warm start of their line is one span of many
    hours.
    """
    single = pipeline.job.roles.data.count == 1
    if not single or not joined_labels(pipeline):
        return None
    part = pipeline.dataset.offset_max // (_PART_OF_OFFSET * timedelta(hours=1))
    return min(max(part, 1), _TOGETHER_MAX)
