"""Which tower a stream feeds: bounded sources are history (`batch`), unbounded ones `stream`."""

from __future__ import annotations

from collections.abc import Mapping

from forebay.config.datasets import Feed, StreamSpec
from forebay.config.pipelines import PipelineSpec
from forebay.config.registry import kind_named
from forebay.config.sources import SourceSpec


def stream_feed(stream: StreamSpec, sources: Mapping[str, SourceSpec]) -> Feed:
    """The declared feed, or the one that the kinds of the stream's sources say."""
    if stream.feed is not None:
        return stream.feed
    bounded = kind_named(sources[stream.sources[0]].kind).bounded
    return "batch" if bounded else "stream"


def has_stream(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> bool:
    """Whether any of a pipeline's streams carries fresh rows."""
    streams = pipeline.dataset.streams.values()
    return any(stream_feed(stream, sources) == "stream" for stream in streams)
