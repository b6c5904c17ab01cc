"""Minibatches for other programs: Arrow columns, or arrays by the names of these columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.datasets import Feed
from forebay.errors import InfrastructureError
from forebay.executors.trainer.inbox import Frame
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served import DENSE, IDS, arrays_by_column
from forebay.mixture.minibatch import Minibatch

SOURCE, FEED = "source", "feed"
_FEEDS: tuple[Feed, ...] = get_args(Feed)
# A list feature: row_splits int64[N+1] and values int64[M].
Lists = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
Arrays = dict[str, str | npt.NDArray[Any] | Lists]


def arrays_of(frame: Frame) -> Arrays:
    """Views of the frame's memory; see `docs/reader.md` for the names and types."""
    minibatch, batch = _rows_of(frame)
    return {FEED: minibatch.feed, SOURCE: minibatch.sources, **arrays_by_column(batch)}


def batch_of(frame: Frame, layout: FeatureLayout, sources: Sequence[str]) -> pa.RecordBatch:
    """The rows as they were served, preceded by columns with the names of source and feed."""
    minibatch, batch = _rows_of(frame)
    feeds = np.full(len(minibatch), _FEEDS.index(minibatch.feed), np.int8)
    columns = [_named(minibatch.sources, sources), _named(feeds, _FEEDS), *batch.columns]
    packed = {DENSE: list(layout.dense), IDS: [column.name for column in layout.ids]}
    fields = [
        pa.field(SOURCE, columns[0].type),
        pa.field(FEED, columns[1].type),
        *(
            field.with_metadata({"features": json.dumps(packed[field.name])})
            if field.name in packed
            else field
            for field in batch.schema
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _named(places: npt.NDArray[Any], names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(places), pa.array(names, pa.string()))


def _rows_of(frame: Frame) -> tuple[Minibatch, pa.RecordBatch]:
    if frame.minibatch is None or frame.batch is None:
        raise InfrastructureError("a frame that only moves positions has no rows")
    return frame.minibatch, cast("pa.RecordBatch", frame.batch)
