"""Feeds: which rows are history (`batch`) and which are fresh (`stream`), and who trains on them.

By default bounded sources are history and unbounded ones fresh; a stream may declare its feed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from forebay.config.datasets import Feed, StreamSpec
from forebay.config.models import Paradigm
from forebay.config.pipelines import PipelineSpec
from forebay.config.registry import kind_named
from forebay.config.sources import SourceSpec
from forebay.config.windows import HOUR
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
    """Whether any of a pipeline's streams carries fresh rows."""
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
