"""Which tower a stream feeds, and which paradigm learns from what."""

from __future__ import annotations

from typing import Any

import pytest
from support.stages import pipeline

from forebay.config.datasets import StreamSpec
from forebay.config.feeds import has_stream, learns_from, stream_feed
from forebay.config.models import Paradigm
from forebay.config.sources import SourceSpec
from forebay.errors import ConfigError

SOURCES = {
    name: SourceSpec.model_validate({"name": name, "kind": kind, "columns": {"a": "int"}})
    for name, kind in (("history", "parquet"), ("lake", "iceberg"), ("clicks", "kafka"))
}


@pytest.mark.parametrize(
    ("stream", "feed"),
    [
        ({"sources": ["history", "lake"]}, "batch"),
        ({"sources": ["clicks"]}, "stream"),
        ({"sources": ["clicks"], "feed": "batch"}, "batch"),
        ({"sources": ["history", "clicks"], "feed": "stream"}, "stream"),
    ],
)
def test_the_feed_of_a_stream(stream: dict[str, Any], feed: str) -> None:
    assert stream_feed("all", StreamSpec.model_validate(stream), SOURCES) == feed


def test_sources_that_disagree_need_an_explicit_feed() -> None:
    stream = StreamSpec(sources=["history", "clicks", "lake"])
    problem = r"stream 'all' mixes bounded \(history, lake\) and unbounded \(clicks\) sources"
    with pytest.raises(ConfigError, match=problem):
        stream_feed("all", stream, SOURCES)


@pytest.mark.parametrize(
    ("streams", "fresh"),
    [(["history"], False), (["clicks"], True), (["history", "clicks"], True)],
)
def test_whether_a_pipeline_has_fresh_rows(streams: list[str], fresh: bool) -> None:
    declared = pipeline(streams)
    assert has_stream(declared, SOURCES) is fresh


@pytest.mark.parametrize(
    ("paradigm", "warm", "window"),
    [
        ("batch", {"batch"}, {"batch"}),
        ("stream", {"stream"}, {"stream"}),
        ("batch_then_stream", {"batch"}, {"stream"}),
        ("mixed", {"batch", "stream"}, {"batch", "stream"}),
        ("mixture", {"batch", "stream"}, {"batch", "stream"}),
    ],
)
def test_paradigms(paradigm: Paradigm, warm: set[str], window: set[str]) -> None:
    def learnt(*, warm_start: bool) -> set[str]:
        feeds = ("batch", "stream")
        return {feed for feed in feeds if learns_from(paradigm, feed, warm_start=warm_start)}

    assert learnt(warm_start=True) == warm
    assert learnt(warm_start=False) == window
