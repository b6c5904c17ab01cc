"""Samples of sources: rows of the requested spans, each once, within the limits."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.parquet_files import write_table

from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.look.sampling import SampleLimits, sample_rows, spread_spans
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.system.instants import to_us
from forebay.testing.source_data import COLUMNS, EVENT_TIME, NUMBER, START, batch

HOURS = 6
ROWS = 50
BATCHES = [batch(hour, range(hour * ROWS, (hour + 1) * ROWS)) for hour in range(HOURS)]
EVERYTHING = Interval(START, START + HOURS * HOUR)


def parquet(place: Path) -> dict[str, Any]:
    for index, each in enumerate(BATCHES):
        write_table(place / f"data/{index}.parquet", each.table)
    return {"path": "data"}


def log(place: Path) -> dict[str, Any]:
    writers = [LogWriter(place / "log", partition) for partition in range(2)]
    for each in BATCHES:
        half = each.table.num_rows // 2
        writers[0].append(each.table.slice(0, half), each.published)
        writers[1].append(each.table.slice(half), each.published)
    return {"path": "log"}


def memory(place: Path) -> dict[str, Any]:
    MEMORY[str(place)] = pa.concat_tables([each.table for each in BATCHES])
    return {"table": str(place)}


KINDS = {"parquet": parquet, "log": log, "memory": memory}


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with closing(opened(request.param, KINDS[request.param](tmp_path), tmp_path)) as found:
        yield found


def opened(kind: str, options: dict[str, Any], place: Path) -> Source:
    fields = {"name": "suite", "kind": kind, "columns": COLUMNS, "event_time": EVENT_TIME}
    return open_source(SourceSpec.model_validate(fields | {"options": options}), place)


def test_times_are_those_that_windows_are_cut_by(source: Source) -> None:
    spans = spread_spans(EVERYTHING, 24, HOUR)
    found = sample_rows(source, spans, [NUMBER, EVENT_TIME], SampleLimits(), 10_000)
    happened = np.asarray(found.table.column(EVENT_TIME).cast("int64"))
    if not kind_named(source.spec.kind).bounded:
        starts = np.array([to_us(each.published) for each in BATCHES])
        happened = starts[np.asarray(found.table.column(NUMBER)) // ROWS]
        assert found.times_us.tolist() == happened.tolist()
    quarter = 900 * 1_000_000
    assert np.abs(found.times_us - happened).max() <= quarter / 2


def test_rows_are_spread_over_spans_and_bounded(source: Source) -> None:
    found = sample_rows(source, spread_spans(EVERYTHING, 6, HOUR), [NUMBER], SampleLimits(), 30)
    numbers = np.asarray(found.table.column(NUMBER))
    assert (len(numbers), len(set(numbers.tolist()))) == (30, 30)
    assert set((numbers // ROWS).tolist()) == set(range(HOURS))
    assert not found.is_whole


def test_only_wanted_rows_are_kept_and_all_are_counted(source: Source) -> None:
    def keep(rows: pa.RecordBatch) -> np.ndarray:
        return np.asarray(pc.equal(rows.column(NUMBER), 17))

    names = [NUMBER, "words"]
    found = sample_rows(source, [EVERYTHING], names, SampleLimits(), 10_000, keep=keep)
    assert found.table.column(NUMBER).to_pylist() == [17]
    assert (found.table.column_names, found.stored_rows in {None, HOURS * ROWS}) == (names, True)
    assert (found.read_rows, found.is_whole) == (HOURS * ROWS, True)


@pytest.mark.parametrize("limits", [{"rows": 1}, {"size_bytes": 1}, {"seconds": 0.0}])
def test_what_is_spent_ends_the_sample(source: Source, limits: dict[str, Any]) -> None:
    shared = SampleLimits(**limits)
    spans = spread_spans(EVERYTHING, 6, HOUR)
    found = sample_rows(source, spans, [NUMBER], shared, 10_000)
    assert found.table.num_rows <= ROWS
    assert not found.is_whole
    assert shared.are_spent
    again = sample_rows(source, spans, [NUMBER], shared, 10_000)
    assert (again.table.num_rows, again.table.column_names) == (0, [NUMBER])


def test_spread_spans_are_disjoint_and_inside() -> None:
    over = Interval(START, START + timedelta(days=28))
    found = spread_spans(over, 12, HOUR)
    assert len(found) == 12
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert over.start <= found[0].start
    assert found[-1].end <= over.end
    assert sum((each.end - each.start for each in found), timedelta(0)) == 12 * HOUR
    assert len({each.start.hour for each in found}) > 6


def test_wide_spans_are_the_whole_interval() -> None:
    over = Interval(START, START + timedelta(hours=7, microseconds=1))
    found = spread_spans(over, 12, timedelta(days=3))
    assert (found[0].start, found[-1].end) == (over.start, over.end)
    assert all(one.end == other.start for one, other in pairwise(found))


def test_rows_of_a_stream_that_were_deleted_are_not_sampled(tmp_path: Path) -> None:
    options = log(tmp_path)
    for segment in sorted((tmp_path / "log").rglob("*.arrow"))[:2]:
        segment.unlink()
    spans = spread_spans(EVERYTHING, 6, HOUR)
    with closing(opened("log", options, tmp_path)) as source:
        found = sample_rows(source, spans, [NUMBER], SampleLimits(), 10_000)
    # Of the hour that the first record left is in, some may have been deleted too.
    assert sorted(found.table.column(NUMBER).to_pylist()) == list(range(3 * ROWS, HOURS * ROWS))
