"""What batch rows find in the stream: in which windows, how far back, after any kill."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.label_lines import SOURCES, SegmentLine, begin, joining_pipeline, same, timed_rows
from support.learning import dataset, record_batch, source
from support.there import there

from forebay.config.specs.pipelines import PipelineSpec
from forebay.executors.label_join.join import LabelJoin
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import ScoreWriter
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served import to_minibatch
from forebay.mixture.features.served_times import ServedTimes
from forebay.mixture.minibatch import Minibatch
from forebay.system.instants import to_us

NAN = math.nan
Row = tuple[int, float, str, float]  # event id, label, event time, wait in hours


def spec(*declared: Any, **more: Any) -> PipelineSpec:
    return joining_pipeline({"label": {"column": "clicked"}}, *declared, **more)


def minibatch(feed: Any, rows: Sequence[Row]) -> Minibatch:
    ids, labels, times, seconds = zip(*rows, strict=True)
    hours, unknown = np.array(seconds, np.float32) * 3600, np.full(len(rows), NAN, np.float32)
    return replace(
        timed_rows(feed, ids, labels, times), waits=hours if feed == "stream" else unknown
    )


class Line(SegmentLine):
    def trained(self, key: str, rows: Sequence[Row], held: Sequence[bool] | None = None) -> Link:
        self.write(key, rows, held)
        return self.linked(key)

    def write(self, key: str, rows: Sequence[Row], held: Sequence[bool] | None = None) -> None:
        writer = ScoreWriter(self.root / key, ["mixture"])
        if rows:
            learnt = minibatch("stream", rows).after_guards(marks(held))
            writer.append(learnt, np.zeros((len(rows), 1), np.float32))
        writer.append(minibatch("batch", [(99, 1, "01T00:00", 0)]), None)
        writer.seal()


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(tmp_path, monkeypatch)


def join_of(line: Line, pipeline: PipelineSpec) -> LabelJoin:
    chain: Any = line
    return LabelJoin(chain, pipeline, SOURCES)


def begun(line: Line, pipeline: PipelineSpec, key: str, before: Link | None) -> LabelJoin:
    join = join_of(line, pipeline)
    begin(join, key, before)
    return join


def found(join: LabelJoin, rows: Sequence[Row]) -> list[list[float]]:
    """(wait in hours, known) of each row."""
    joined = join.joined(minibatch("batch", rows))
    return np.stack([there(joined.waits) / 3600, there(joined.known)], axis=1).tolist()


def marks(held: Sequence[bool] | None) -> Any:
    return None if held is None else np.array(held)[:, np.newaxis]


def test_a_row_finds_what_an_earlier_window_published(line: Line) -> None:
    line.trained("2026-03-01T07", [(1, 0, "01T06:30", 1), (2, 1, "01T06:40", 0.5)])
    last = line.trained("2026-03-01T08", [(3, 0, "01T07:10", 1), (1, 1, "01T06:30", 2)])
    join = begun(line, spec(), "2026-03-02T06", last)
    asked: list[Row] = [
        (1, 1, "01T06:30", NAN),  # positive, and the stream did not know; the first copy counts
        (2, 1, "01T06:40", NAN),
        (3, 0, "01T07:10", NAN),
        (4, 1, "01T07:20", NAN),  # never in the stream
        (99, 1, "01T00:00", NAN),  # a batch row of before is no copy
    ]
    same(found(join, asked), [[1, 0], [0.5, 1], [1, 1], [NAN, NAN], [NAN, NAN]])
    assert len(join._earlier) == 4


@pytest.mark.guarantee(
    "history brings the events whose rows were held back",
    "the delay of labels is learnt from other events: what was held back is marked beside its "
    "scores, and the label join ignores it",
)
def test_what_the_guard_held_is_no_copy(line: Line) -> None:
    """Its labels had stopped coming: of how late labels are it says nothing."""
    rows: list[Row] = [(1, 0, "01T06:30", 1), (2, 0, "01T06:40", 1), (3, 1, "01T06:50", 1)]
    last = line.trained("2026-03-01T07", rows, [True, True, False])
    again, join = line.trained("2026-03-01T08", [(2, 1, "01T06:40", 2)]), join_of(line, spec())
    asked: list[Row] = [(each, 1, f"01T06:{each + 2}0", NAN) for each in (1, 2, 3)]
    begin(join, "2026-03-02T06", again)
    same(found(join, asked), [[NAN, NAN], [2, 1], [1, 1]])
    # Of its own window too, whether it was there or is killed and reads its segments.
    for resumed in (False, True):
        join = join_of(line, spec(offset="3h"))
        plan = begin(join, "2026-03-01T06", None)
        if resumed:
            join.resume(plan, line.root / last.window)
        else:
            join.add(minibatch("stream", rows).after_guards(marks([True, True, False])))
        early: list[Row] = [(each, 1, "01T03:00", NAN) for each in (1, 2, 3)]
        known = [not math.isnan(wait) for wait, _ in found(join, early)]
        assert not any(known[:2])


@pytest.mark.parametrize("known_at", [None, "known"])
def test_each_positive_is_learnt_once_whatever_known_at_says(
    line: Line, known_at: str | None
) -> None:
    """A label became known between writing a row and committing it, 50 rows with one."""
    hours, positives = np.arange(100) / 50, np.arange(100) % 2 == 0  # known after; in the end
    early = positives & (hours <= 0.5)  # when the stream's rows are written; an hour: readable
    at = datetime(2026, 3, 1, 6, tzinfo=UTC)
    rows = {
        "e": list(map(str, range(100))),
        "y": positives.astype(int).tolist(),
        "n": [0] * 100,
        "at": [at] * 100,
        "known": [at + timedelta(hours=float(each)) for each in hours],
    }
    data = dataset({"n": {"encode": "numeric"}}, label={"column": "y", "known_at": known_at})
    stored = source({"n": "int", "at": "timestamp", "known": "timestamp"})
    stored = stored.model_copy(update={"event_time": "at"})
    layout = FeatureLayout.of(data, stored.columns)
    encoder = Encoder(data, stored, layout, ServedTimes(event_times=True, waits=True), "batch")
    end = to_us(at + timedelta(days=1))  # of the window: by then all labels are known
    encoded = encoder.encode(record_batch(stored, rows), np.arange(100), None, end).batch
    batch = to_minibatch(encoded, [(0, 100)], "batch", layout)
    copies = zip(batch.event_ids.tolist(), early.tolist(), strict=True)
    last = line.trained("2026-03-01T07", [(n, said, "01T06:00", 1) for n, said in copies])
    joined = begun(line, spec(), "2026-03-02T06", last).joined(batch)
    late = (joined.labels == 1) & (there(joined.known) == 0)
    assert (late + early == positives).all()
    assert 0 < late.sum() < positives.sum()


def test_copies_are_looked_for_as_far_back_as_label_join(line: Line) -> None:
    for hour in range(6):
        line.trained(f"2026-03-01T0{hour}", [(hour, 1, f"01T0{hour}:10", 0.1)])
    for within, oldest in (("3h", 3), ("4h", 2), (None, 3)):
        join = join_of(line, spec(offset="3h", **{} if within is None else {"label_join": within}))
        begin(join, "2026-03-01T06", line.links[-1])
        asked: list[Row] = [(hour, 1, f"01T0{hour}:10", NAN) for hour in range(6)]
        waits = [wait for wait, _ in found(join, asked)]
        assert [not math.isnan(wait) for wait in waits] == [hour >= oldest for hour in range(6)]


def test_each_window_is_read_once_and_forgotten_in_time(line: Line) -> None:
    join, again = join_of(line, spec(offset="3h")), None
    for hour in range(8):
        before = line.links[-1] if line.links else None
        begin(join, f"2026-03-01T0{hour}", before)
        again = join_of(line, spec(offset="3h"))
        line.read.clear()
        begin(again, f"2026-03-01T0{hour}", before)
        asked: list[Row] = [(event, 1, "01T00:00", NAN) for event in range(20)]
        same(found(join, asked), found(again, asked))
        # Of three windows, and what was stamped ahead.
        assert len(join._earlier) == len(again._earlier) <= 10
        # A copy that came twice, and a row that a clock has stamped in the future.
        rows: list[Row] = [(hour, 1, f"01T0{hour}:10", 0.1), (hour + 1, 0, f"01T0{hour}:20", 0.2)]
        line.trained(f"2026-03-01T0{hour}", [*rows, (17, 1, "05T00:00", 0)])
    line.read.clear()
    begin(join, "2026-03-01T08", line.links[-1])
    assert line.read == ["2026-03-01T07"]


def test_a_line_that_goes_back_reads_again(line: Line) -> None:
    for hour in range(3):
        line.trained(f"2026-03-01T0{hour}", [(hour, 1, f"01T0{hour}:10", 0.1)])
    join = begun(line, spec(), "2026-03-01T03", line.links[-1])
    assert len(join._earlier) == 3
    begin(join, "2026-03-01T01", line.links[0])
    assert len(join._earlier) == 1
    begin(join, "2026-03-01T00", None)
    assert len(join._earlier) == 0


def test_rows_of_this_window_are_found_once_they_came_long_enough_before(line: Line) -> None:
    pipeline = spec("1d")  # 24 h later: rows of six hours may be together, two more lie between
    line.write("2026-03-02", [(1, 1, "01T23:00", 2.5), (2, 1, "01T23:00", 3.5)])
    join = join_of(line, pipeline)
    join.resume(begin(join, "2026-03-02", None), line.root / "2026-03-02")
    join.add(minibatch("stream", [(3, 0, "02T01:00", 1), (4, 0, "", NAN), (1, 0, "01T23:00", 1)]))
    asked: list[Row] = [
        (1, 1, "01T09:00", NAN),  # is served in hour 9; its first copy was in hour 0
        (2, 1, "01T10:00", NAN),  # hour 10, and the copy in hour 2
        (2, 1, "01T09:59", NAN),
        (3, 1, "01T23:00", NAN),
        (4, 1, "01T23:00", NAN),
        (1, 1, "", NAN),  # nobody knows when it is served
    ]
    none = [NAN, NAN]
    same(found(join, asked), [[1, 0], [3.5, 1], none, [1, 0], none, none])


def test_several_data_executors_keep_no_order_within_a_window(line: Line) -> None:
    join = join_of(line, spec("1d", count=2))
    join.resume(begin(join, "2026-03-02", None), line.root / "2026-03-02")
    join.add(minibatch("stream", [(1, 1, "02T00:00", 1)]))
    same(found(join, [(1, 1, "01T23:00", NAN)]), [[NAN, NAN]])


def test_rows_without_a_time_are_nothing_to_find(line: Line) -> None:
    last, join = line.trained("2026-03-01T07", [(1, 0, "", NAN)]), join_of(line, spec())
    begin(join, "2026-03-02T06", last)
    assert (len(join._earlier), timedelta(hours=24)) == (0, spec().dataset.joined_within)


def test_a_window_that_was_trained_again_is_read_again(line: Line) -> None:
    first = line.trained("2026-03-01T07", [(1, 1, "01T06:10", 0.5)])
    join = begun(line, spec(), "2026-03-01T08", first)
    asked: list[Row] = [(1, 1, "01T06:10", NAN), (2, 1, "01T06:10", NAN)]
    same(found(join, asked), [[0.5, 1], [NAN, NAN]])
    line.links.clear()
    line.write("again", [(2, 1, "01T06:10", 0.5)])
    begin(join, "2026-03-01T08", line.linked("2026-03-01T07", "again", generation=2))
    same(found(join, asked), [[NAN, NAN], [0.5, 1]])


def test_a_warm_start_of_hourly_windows_finds_its_own_rows(line: Line) -> None:
    """It is one span of many hours, and what it published is asked for after it."""
    join = begun(line, spec("1h"), "2026-03-01_2026-03-05T00", None)
    join.add(minibatch("stream", [(1, 0, "01T01:00", 1), (2, 1, "01T02:00", 1)]))
    asked: list[Row] = [(1, 1, "01T01:00", NAN), (2, 1, "01T02:00", NAN)]
    same(found(join, asked), [[1, 0], [1, 1]])
    writer = ScoreWriter(line.root / "warm", [])
    writer.append_published(minibatch("stream", [(7, 0, "04T23:00", 1)]))
    writer.seal()
    begin(join, "2026-03-05T00", line.linked("2026-03-01_2026-03-05T00", "warm"))
    same(found(join, [(7, 1, "04T23:00", NAN), (1, 1, "01T01:00", NAN)]), [[1, 0], [NAN, NAN]])


def test_a_long_warm_start_forgets_what_nobody_can_ask_for(line: Line) -> None:
    join = begun(line, spec("1h"), "2026-01-01_2026-03-29T00", None)
    for day in range(1, 20):
        join.add(minibatch("stream", [(day, 1, f"{day:02d}T01:00", 1)]))
    assert len(join._this) < 6
    newest: list[Row] = [(18, 1, "18T01:00", NAN), (1, 1, "01T01:00", NAN)]
    same(found(join, newest), [[1, 1], [NAN, NAN]])
