"""Feeds: which rows are history (`batch`) and which are fresh (`stream`), and who trains on them.

Bounded sources are history, unbounded ones fresh, unless the stream says it.
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

# What minibatches belong to: the warm start, the last hours of it, of which history holds no rows
# yet, or a window after it.
Phase = Literal["warm_start", "warm_start_end", "window"]


def stream_feed(name: str, stream: StreamSpec, sources: Mapping[str, SourceSpec]) -> Feed:
    """The declared feed of a stream, or the one that the kinds of its sources say.

    Raises:
        ConfigError: when the kinds disagree and the stream does not say. `forebay check` reports
            it, and no command runs a pipeline that has a problem.
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
    """What each use of a source feeds, by its name."""
    streams = pipeline.dataset.streams.items()
    feeds = {name: stream_feed(name, stream, sources) for name, stream in streams}
    return {use.name: feeds[use.stream] for use in pipeline.uses}


def has_stream(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> bool:
    """Whether any of a pipeline's streams carries fresh rows."""
    return "stream" in source_feeds(pipeline, sources).values()


def unread_hours(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> int:
    """The last hours before a window's end of which the stream has rows, and history none yet.

    The least offset of history, less what the stream is late itself; 0 without one of both feeds.
    """
    offsets: dict[Feed, list[int]] = {"batch": [], "stream": []}
    for name, stream in pipeline.dataset.streams.items():
        offsets[stream_feed(name, stream, sources)].append(stream.offset // HOUR)
    if not offsets["batch"] or not offsets["stream"]:
        return 0
    return max(0, min(offsets["batch"]) - max(offsets["stream"]))


def learns_from(paradigm: Paradigm, feed: Feed, phase: Phase) -> bool:
    """Whether a paradigm learns from minibatches of this feed.

    `batch_then_stream` learns from batch rows while the warm start lasts, from stream rows too in
    the last hours of it, whose batch rows come after it, and from stream rows alone in every window
    after it: without them it would miss a day for good. Without a warm start it equals `stream`.
    """
    if paradigm in ("mixed", "mixture"):
        return True
    if paradigm == "batch_then_stream":
        return phase == "warm_start_end" or feed == ("batch" if phase == "warm_start" else "stream")
    return feed == paradigm
