"""What a data executor serves, by the declaration."""

from __future__ import annotations

from support.stages import memory_source, pipeline

from forebay.config.specs.sources import SourceSpec
from forebay.executors.data_executor.executor import limits_of, queue_sources_of
from forebay.mixture.queue.queue import Limits


def test_each_use_of_a_source_has_the_weight_and_feed_of_its_stream() -> None:
    streams = {
        "old": {"sources": ["a", "b"], "weight": 1.5, "floor": 0.25, "offset": "24h"},
        "new": {"sources": ["a"], "weight": 3, "feed": "stream"},
    }
    sources: dict[str, SourceSpec] = {name: memory_source(name) for name in "ab"}
    spec = pipeline((), dataset={"streams": streams, "queue_unit": 7.5})
    found = queue_sources_of(spec, sources)
    assert list(found.names) == ["a@old", "b", "a@new"]
    assert list(found.feeds) == ["batch", "batch", "stream"]
    assert (list(found.weights), list(found.groups)) == ([1.5, 1.5, 3.0], [0, 0, 1])
    assert (list(found.floors), found.queue_unit) == ([0.25, 0.0], 7.5)


def test_bounds_are_the_pipeline_s() -> None:
    sizes = {"rows_max": 11, "bytes_max": 2**17, "chunk_rows": 7}
    seconds = {"flush_seconds": 0.5, "settle_seconds": 1.5}
    spec = pipeline(("a",), train={"minibatch_rows": 9}, job={"buffers": {**sizes, **seconds}})
    assert limits_of(spec, 10) == Limits(9, 11, 2**17, 7, 0.5, settle_seconds=1.5)


def test_rows_of_many_columns_come_in_smaller_chunks() -> None:
    spec = pipeline(("a",), job={"buffers": {"bytes_max": 2**20, "chunk_rows": 1000}})
    assert (limits_of(spec, 65).chunk_rows, limits_of(spec, 66).chunk_rows) == (1000, 992)
    assert limits_of(spec, 10**6).chunk_rows == 1
