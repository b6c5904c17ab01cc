"""Small parts of the data path: cutting chunks, error reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from support.stages import memory_source, pipeline

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.common.values.times import UNKNOWN
from forebay.datatasks.tasks import Chunk, DeadRow, Position, TaskProgress
from forebay.errors import (
    ConfigError,
    DataError,
    FencedError,
    ForebayError,
    InfrastructureError,
    NotKnownError,
    NotReadyError,
)
from forebay.executors.data_executor.chunk_rows import ServedChunk, served_chunk
from forebay.executors.data_executor.executor import limits_of, queue_sources_of
from forebay.mixture.features.encode import Encoded
from forebay.mixture.queue.queue import Limits
from forebay.system.output.error_report import ErrorReport

BEFORE = TaskProgress(position=Position(0, 0), rows_read=100, dead_rows=10)


def chunk_of(
    rows: list[int],
    dead: list[tuple[int, int]],
    null: list[int],
    end: int,
    bad: dict[int, str] | None = None,
    not_known: list[int] | None = None,
    before: TaskProgress = BEFORE,
    **times: npt.NDArray[Any],
) -> ServedChunk:
    """Rows by number; dead rows as (row number, rows that it stands for)."""
    numbers = np.array(rows, np.int64)
    batch = pa.record_batch([pa.array(numbers)], names=["row"])
    chunk = Chunk(
        batch=batch,
        row_ids=numbers,
        parts=np.zeros(len(rows), np.int64),
        rows=numbers,
        hours=np.arange(len(rows), dtype=np.int32) // 2,
        end=Position(0, end),
        dead=tuple(
            DeadRow(position=Position(0, row), location={"row": row}, reason="bad", rows=count)
            for row, count in dead
        ),
        **times,
    )
    late = None if not_known is None else np.isin(numbers, not_known)
    reasons = {rows.index(number): reason for number, reason in (bad or {}).items()}
    encoded = Encoded(batch, np.isin(numbers, null), reasons, late)
    return served_chunk(chunk, encoded, before, lambda position: {"row": position.row})


def test_positions_count_every_row_once_wherever_a_cut_falls() -> None:
    found = chunk_of([2, 3, 5, 6, 9], dead=[(1, 1), (4, 3), (8, 1), (11, 2)], null=[5], end=13)
    assert found.batch.column(0).to_pylist() == [2, 3, 6, 9]
    assert [row.position.row for row in found.dead] == [1, 4, 5, 8, 11]
    steps = [found.progress(served) for served in range(5)]
    assert [each.position.row for each in steps] == [2, 3, 6, 9, 13]
    assert [each.dead_rows for each in steps] == [11, 11, 15, 16, 18]
    assert [each.rows_read for each in steps] == [101, 102, 107, 109, 112]
    assert found.after == steps[-1]
    assert not found.after.ended


@pytest.mark.parametrize("name", ["times", "published"])
def test_the_first_and_the_last_time_of_served_rows_are_told(name: str) -> None:
    """Of rows that are served; what has no time has none, and what was before counts."""
    at = np.array([30, 1, 20, UNKNOWN, 99], np.int64)
    found = chunk_of([2, 3, 5, 6, 9], [], null=[3, 9], end=13, **{name: at})
    for served in range(4):
        progress = found.progress(served)
        last = 30 if served or name == "times" else None  # a lag is that of a row that was used
        assert (progress.first_us, progress.last_us) == (20, last)
    later = chunk_of([14], [], [], 15, before=found.after, **{name: np.array([25], np.int64)})
    assert (later.after.first_us, later.after.last_us) == (20, 30)
    earlier = chunk_of([14], [], [], 15, before=found.after, **{name: np.array([-7], np.int64)})
    assert (earlier.after.first_us, earlier.after.last_us) == (-7, 30)
    assert chunk_of([1], [], [], 2, **{name: np.array([UNKNOWN], np.int64)}).after.first_us is None
    assert chunk_of([1], [], [], 2).after.last_us is None


def test_served_rows_outside_of_the_span_count_and_the_first_after_it_is_named() -> None:
    outside = np.array([0, 1, -1, 0, 1, 1], np.int8)
    found = chunk_of([2, 3, 4, 5, 6, 7], [], null=[3], end=8, outside=outside)
    steps = [found.progress(served) for served in range(6)]
    assert [each.late_rows for each in steps] == [0, 0, 1, 1, 1, 1]
    assert [each.odd_timestamps for each in steps] == [0, 0, 0, 0, 1, 2]
    assert [each.first_odd for each in steps] == [""] * 4 + ["row 6"] * 2


def test_each_row_is_served_dead_or_of_an_unknown_label_wherever_a_cut_falls() -> None:
    found = chunk_of(
        [2, 3, 5, 6, 7, 9],
        dead=[(4, 3)],
        null=[5, 6],
        end=13,
        bad={2: "column 'price' is nan", 9: "the event has no id"},
        not_known=[6, 7, 9],
    )
    assert found.batch.column(0).to_pylist() == [3]
    reasons = {row.position.row: row.reason for row in found.dead}
    assert reasons == {
        2: "column 'price' is nan",
        4: "bad",
        5: "the label is null",  # of 6 nobody knows the label yet: it may still come
        9: "the event has no id",  # bad, whatever is known of its label
    }
    steps = [found.progress(served) for served in range(2)]
    assert [each.position.row for each in steps] == [3, 13]
    assert [each.dead_rows for each in steps] == [11, 16]
    assert [each.label_not_known for each in steps] == [0, 2]
    assert [each.rows_read for each in steps] == [101, 109]
    assert found.progress(1).rows_read - 100 == 1 + 6 + 2


def test_a_cut_without_dead_rows_keeps_the_batch_as_it_is() -> None:
    found = chunk_of([0, 1, 2, 3], dead=[], null=[], end=4)
    assert (found.batch.num_rows, found.buffered(1).hours.tolist()) == (4, [1, 1, 1, 1])
    assert found.progress(2).rows_read == 102


@pytest.mark.parametrize(
    "kind", [ConfigError, DataError, FencedError, InfrastructureError, NotKnownError, NotReadyError]
)
def test_errors_cross_processes_in_their_class(kind: type[ForebayError]) -> None:
    back = ErrorReport.of(kind("row 7")).exception()
    assert (type(back), str(back)) == (kind, "row 7")


def test_unknown_errors_keep_their_remedy() -> None:
    assert type(ErrorReport(error="Odd", message="m", exit_code=3).exception()) is DataError
    assert "KeyError" in ErrorReport.of(KeyError("x")).message


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
