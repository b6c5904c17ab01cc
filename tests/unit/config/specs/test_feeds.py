"""Which tower a stream feeds, and which paradigm learns from what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from support.stages import pipeline

from forebay.config.specs.datasets import Doubled, StreamSpec, doubled_sources, is_use_name
from forebay.config.specs.feeds import (
    Phase,
    has_stream,
    hours_together,
    joined_labels,
    learns_from,
    stream_feed,
    unread_hours,
)
from forebay.config.specs.models import Paradigm
from forebay.config.specs.sources import SourceSpec
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


def test_whether_a_pipeline_has_fresh_rows() -> None:
    assert not has_stream(pipeline(["history"]), SOURCES)
    assert has_stream(pipeline(["history", "clicks"]), SOURCES)


@pytest.mark.parametrize(
    ("paradigm", "learnt"),
    [
        *(("batch", "b b b"), ("stream", "s s s"), ("batch_then_stream", "b bs s")),
        *(("mixed", "bs bs bs"), ("mixture", "bs bs bs")),
    ],
)
def test_paradigms(paradigm: Paradigm, learnt: str) -> None:
    phases: tuple[Phase, ...] = ("warm_start", "warm_start_end", "window")
    for phase, feeds in zip(phases, learnt.split(), strict=True):
        for feed in ("batch", "stream"):
            assert learns_from(paradigm, feed, phase) == (feed[0] in feeds)


@pytest.mark.parametrize(
    ("offsets", "hours"),
    [
        *(({"history": "24h"}, 0), ({"clicks": "0h"}, 0), ({"history": "24h", "clicks": "0h"}, 24)),
        *(({"history": "24h", "clicks": "2h"}, 22), ({"history": "1h", "clicks": "3h"}, 0)),
        ({"history": "24h", "lake": "6h", "clicks": "0h"}, 6),
    ],
)
def test_the_last_hours_that_history_does_not_hold_yet(offsets: dict[str, str], hours: int) -> None:
    streams = {name: {"sources": [name], "offset": offset} for name, offset in offsets.items()}
    declared = pipeline((), dataset={"streams": streams})
    assert unread_hours(declared, SOURCES) == hours


HEAD = {"paradigm": "mixture", "delay": "head"}


def made(window: str, offset: str, train: dict[str, Any], **more: Any) -> Any:
    streams = {"a": {"sources": ["a"], "offset": offset}, "b": {"sources": ["b"]}}
    dataset = {"window": window, "streams": streams}
    return pipeline(("a", "b"), dataset=dataset, train=train, **({"model": {}} | more))


@pytest.mark.parametrize(
    ("train", "joins"),
    [
        *(({"paradigm": "mixture"}, False), (HEAD, True)),
        ({"paradigm": "stream", "compare": [{"paradigm": "mixed", "delay": "fnw"}]}, True),
    ],
)
def test_labels_are_joined_where_a_variant_corrects_them(
    train: dict[str, Any], *, joins: bool
) -> None:
    assert bool(joined_labels(made("1d", "24h", train))) == joins
    assert not joined_labels(made("1d", "24h", train, model={"kind": "count"}))


@pytest.mark.parametrize(
    ("offset", "hours"), [("0s", 1), ("3h", 1), ("8h", 2), ("12h", 3), ("24h", 6), ("7d", 6)]
)
def test_the_later_batch_rows_come_the_more_hours_are_together(offset: str, hours: int) -> None:
    assert hours_together(made("1d", offset, HEAD)) == hours


def test_hours_are_not_looked_at_where_nothing_is_found_by_them() -> None:
    assert hours_together(made("1d", "24h", {"paradigm": "mixture"})) is None
    several = {"roles": {"data": {"count": 2}}}
    assert hours_together(made("1d", "24h", HEAD, job=several)) is None


def test_copies_are_looked_for_as_far_back_as_the_largest_offset() -> None:
    dataset = made("1d", "36h", HEAD).dataset
    assert dataset.joined_within == timedelta(hours=36)
    longer = dataset.model_copy(update={"label_join": timedelta(days=7)})
    assert longer.joined_within == timedelta(days=7)


@pytest.mark.parametrize("text", ["", "@", "a@", "@b", "a@b@c", "a b", "a@b c", "a@1"])
def test_other_texts_are_no_names(text: str) -> None:
    assert not is_use_name(text)


def test_rows_are_read_twice_by_one_offset_alone() -> None:
    streams = {"now": ["clicks"], "also": ["views", "clicks"], "yesterday": ["clicks"]}
    offsets = {"now": timedelta(0), "also": timedelta(0), "yesterday": timedelta(days=1)}
    assert list(doubled_sources(streams, offsets)) == [Doubled("clicks", "also", 1, "now")]
    # What is not known is not compared; one stream has one offset, whatever it is.
    assert list(doubled_sources(streams, {})) == []
    assert list(doubled_sources({"now": ["a", "a"]}, {})) == [Doubled("a", "now", 1, "now")]
