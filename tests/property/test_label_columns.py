"""Segments of several labels: read for one of them, they are those that it alone would have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from support.minibatches import labelled

from forebay.executors.window_files.scores import (
    ScoreWriter,
    Segments,
    judge_rows_max,
    paradigms_of,
    slices_of,
)
from forebay.mixture.minibatch import LabelRows, Minibatch
from forebay.mixture.minibatch_rows import joined, take

Rows = list[tuple[int, float, float, float]]
LABELS = ("", "sale", "visit")
VARIANTS = ("mixture+head", "stream", "mixture+head/memory")
COLUMNS = [f"{label}:{name}" if label else name for label in LABELS for name in VARIANTS]
SAID = st.sampled_from([0.0, 1.0, np.nan])
ROWS = st.lists(st.tuples(st.integers(0, 40), SAID, SAID, SAID), max_size=30)


def several(feed: Any, rows: Rows) -> Minibatch:
    ids, *labels = zip(*rows, strict=True) if rows else ((), (), (), ())
    made = labelled(feed, ids, labels[0])
    others = tuple(LabelRows(np.array(each, np.float32)) for each in labels[1:])
    times = np.arange(len(ids), dtype=np.int64)
    waits = np.arange(len(ids), dtype=np.float32)
    timed = replace(made, further=others, event_times=times, waits=waits)
    held = np.random.default_rng(len(ids)).random((len(ids), len(LABELS))) < 0.3
    return timed.after_guards(held) if feed == "stream" else timed


def scores_of(minibatch: Minibatch, columns: int) -> Any:
    return np.random.default_rng(5).random((len(minibatch), columns)).astype(np.float32)


def said_by(minibatch: Minibatch, place: int) -> Minibatch:
    """One label alone, of the rows that say it."""
    own = replace(minibatch.of_label(place), further=())
    return take(own, np.flatnonzero(~np.isnan(own.labels)))


def same(left: pa.Table | None, right: pa.Table | None) -> None:
    assert (left is None) == (right is None)
    if left is not None and right is not None:
        assert left.schema.equals(right.schema, check_metadata=True)
        for name in left.column_names:
            one, other = (table.column(name).to_pylist() for table in (left, right))
            assert repr(one) == repr(other), name


@settings(deadline=None, max_examples=30)
@given(ROWS, ROWS)
def test_a_label_is_read_as_if_it_were_the_only_one(stream: Rows, batch: Rows) -> None:
    fresh, complete = several("stream", stream), several("batch", batch)
    with TemporaryDirectory() as folder:
        together = ScoreWriter(Path(folder) / "all", COLUMNS, {}, 7, LABELS[1:])
        together.append(fresh, scores_of(fresh, len(COLUMNS)))
        together.append_published(fresh)
        together.append(complete, None)
        together.append_judged(complete, "w", scores_of(complete, len(COLUMNS)))
        together.seal()
        for place, label in enumerate(LABELS):
            alone = ScoreWriter(Path(folder) / f"alone{place}", VARIANTS, {}, 7)
            own = slice(place * len(VARIANTS), (place + 1) * len(VARIANTS))
            said = ~np.isnan(fresh.of_label(place).labels)
            alone.append(said_by(fresh, place), scores_of(fresh, len(COLUMNS))[said, own])
            alone.append_published(said_by(fresh, place))
            alone.append(said_by(complete, place), None)
            every = replace(complete.of_label(place), further=())
            alone.append_judged(every, "w", scores_of(complete, len(COLUMNS))[:, own])
            alone.seal()
            left = Segments("w", Path(folder) / "all", label)
            right = Segments("w", Path(folder) / f"alone{place}")
            for table in (Segments.scores, Segments.labels, Segments.published, Segments.judged):
                same(table(left), table(right))
            judged = left.judged()
            assert judged is not None
            assert (paradigms_of(judged), slices_of(judged)) == (VARIANTS, ())
            assert judge_rows_max(judged) == 7


@given(ROWS.filter(bool), st.data())
def test_rows_taken_apart_are_the_rows_put_together(rows: Rows, data: st.DataObject) -> None:
    whole, cut = several("batch", rows), data.draw(st.integers(0, len(rows)))
    again = joined([take(whole, np.arange(cut)), take(whole, np.arange(cut, len(rows)))])
    for place in range(len(LABELS)):
        left, right = again.of_label(place), whole.of_label(place)
        np.testing.assert_array_equal(left.labels, right.labels)
        assert left.waits is not None
        np.testing.assert_array_equal(left.waits, whole.waits)
