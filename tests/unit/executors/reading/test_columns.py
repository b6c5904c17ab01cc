"""One frame as Arrow and as NumPy: the same rows, by the same names."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from support.served_rows import batch_of_lists

from forebay.config.specs.datasets import Feed
from forebay.errors import InfrastructureError
from forebay.executors.reading.rows import arrays_of, batch_of
from forebay.executors.trainer.inbox import Frame
from forebay.mixture.features.layout import FeatureLayout, IdColumn
from forebay.mixture.minibatch import Minibatch

LAYOUT = FeatureLayout(
    dense=("price", "age", "size"),
    ids=tuple(IdColumn(name=name, cardinality=9, dimension=2) for name in ("user", "ad")),
    lists=(),
    specs={},
    types={},
    stored_columns=(),
)
NAMES = ["history", "clicks"]


def frame(batch: pa.RecordBatch, feed: Feed = "stream") -> Frame:
    rows = batch.num_rows
    minibatch = Minibatch(
        feed=feed,
        row_ids=batch.column("row_id").to_numpy(),
        event_ids=np.zeros(rows, np.int64),
        sources=(np.arange(rows) % 2).astype(np.int32),
        labels=batch.column("label").to_numpy(),
        dense=np.empty((rows, 0), np.float32),
        ids=np.empty((rows, 0), np.int64),
    )
    return Frame(minibatch, {}, "data-0", 1, rows, 0, feed, batch)


@pytest.mark.parametrize("feed", ["batch", "stream"])
def test_arrow_has_source_and_feed_before_what_was_served(feed: Feed) -> None:
    served = batch_of_lists(5, seed=1)
    found = batch_of(frame(served, feed), LAYOUT, NAMES)
    found.validate(full=True)
    assert found.column("source").to_pylist() == ["history", "clicks"] * 2 + ["history"]
    assert found.column("feed").to_pylist() == [feed] * 5
    assert found.select(served.schema.names).equals(served)
    assert {
        name: json.loads(found.field(name).metadata[b"features"]) for name in ("dense", "ids")
    } == {"dense": ["price", "age", "size"], "ids": ["user", "ad"]}


def test_batches_of_both_feeds_make_one_table() -> None:
    feeds: list[Feed] = ["batch", "stream"]
    batches = [batch_of(frame(batch_of_lists(3, seed=1), feed), LAYOUT, NAMES) for feed in feeds]
    table = pa.Table.from_batches(batches)
    assert table.column("feed").unify_dictionaries().to_pylist() == ["batch"] * 3 + ["stream"] * 3


def test_arrays_hold_the_same_as_columns_and_are_views() -> None:
    served = batch_of_lists(50, seed=2).slice(7, 20)
    found = arrays_of(frame(served))
    assert found.pop("feed") == "stream"
    source = found.pop("source")
    assert isinstance(source, np.ndarray)
    assert source.dtype == np.int32
    assert list(found) == served.schema.names
    for name, values in found.items():
        column = served.column(name)
        if isinstance(values, tuple):
            splits, flat = values
            assert [flat[a:b].tolist() for a, b in pairwise(splits)] == column.to_pylist()
            assert splits.dtype == flat.dtype == np.int64
        else:
            assert isinstance(values, np.ndarray)
            assert values.tolist() == column.to_pylist()
            assert not values.flags.owndata, name
    ids = found["ids"]
    assert isinstance(ids, np.ndarray)
    assert (ids.dtype, ids.shape) == (np.dtype(np.int64), (20, 2))


def test_a_frame_without_rows_has_no_columns() -> None:
    with pytest.raises(InfrastructureError, match="has no rows"):
        arrays_of(Frame(None, {}, "data-0", 1, 0, 0))
