"""Kernels look at no bounds: what lies about its lengths never reaches one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from support.learning import dataset, source

from forebay.errors import DataError
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.feature_rows import event_ids
from forebay.mixture.features.layout import FeatureLayout

ROWS = 4


Spoil = Callable[[], None]


def text(offsets: list[int], data: bytes = b"abcd") -> tuple[pa.Array, Spoil]:
    """Texts whose offsets become others later: Arrow looks at them while an array is made."""
    good = np.arange(ROWS + 1, dtype=np.int32)
    buffers = [None, pa.py_buffer(good), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), ROWS, buffers), lambda: good.put(range(5), offsets)


def lists(offsets: list[int]) -> tuple[pa.Array, Spoil]:
    good = np.arange(ROWS + 1, dtype=np.int32)
    items = pa.array([1] * ROWS, pa.int64())
    buffers = [None, pa.py_buffer(good)]
    found = pa.Array.from_buffers(pa.list_(pa.int64()), ROWS, buffers, children=[items])
    return found, lambda: good.put(range(5), offsets)


def dictionary(indices: list[int]) -> tuple[pa.Array, Spoil]:
    good = np.zeros(ROWS, np.int32)
    plain = pa.Array.from_buffers(pa.int32(), ROWS, [None, pa.py_buffer(good)])
    found = pa.DictionaryArray.from_arrays(plain, pa.array(["a", "b"]))
    return found, lambda: good.put(range(4), indices)


HOSTILE: dict[str, tuple[str, Callable[[], tuple[pa.Array, Spoil]]]] = {
    "texts that end behind their bytes": ("string", lambda: text([0, 1, 2, 3, 2**30])),
    "texts that begin before their bytes": ("string", lambda: text([-(2**30), 1, 2, 3, 4])),
    "texts of negative length": ("string", lambda: text([0, 4, 2, 3, 4])),
    "bytes that are no text": ("string", lambda: text([0, 1, 2, 3, 4], b"ab\xff\xfe")),
    "lists that end behind their items": ("list<int>", lambda: lists([0, 1, 2, 3, 2**30])),
    "lists that begin before their items": ("list<int>", lambda: lists([-(2**30), 1, 2, 3, 4])),
    "lists of negative length": ("list<int>", lambda: lists([0, 4, 2, 3, 4])),
    "an index behind its dictionary": ("string", lambda: dictionary([0, 1, 2, 0])),
    "an index before its dictionary": ("string", lambda: dictionary([0, 1, -1, 0])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_damaged_column_is_refused(name: str) -> None:
    kind, make = HOSTILE[name]
    spec = source({"c": kind})
    data = dataset({"c": {"encode": "hash", "buckets": 1000}})
    encoder = Encoder(data, spec, FeatureLayout.of(data, spec.columns))
    damaged, spoil = make()
    others = {"e": pa.array(list("abcd")), "y": pa.array([0] * ROWS, pa.int64())}
    batch = pa.RecordBatch.from_arrays([*others.values(), damaged], [*others, "c"])
    spoil()
    with pytest.raises(DataError, match="a batch of rows is damaged: "):
        encoder.encode(batch, np.arange(ROWS))
    if kind != "list<int>":
        with pytest.raises((DataError, pa.ArrowInvalid)):
            event_ids([(damaged, spec.columns["c"])])


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("string", pa.string_view()),
        ("string", pa.binary()),
        ("int", pa.uint64()),
        ("int", pa.float64()),
        ("float", pa.float16()),
        ("timestamp", pa.timestamp("ns")),
        ("list<int>", pa.large_list(pa.int64())),
        ("list<int>", pa.list_view(pa.int64())),
        ("list<int>", pa.int64()),
        ("int", pa.list_(pa.int64())),
        ("int", pa.dictionary(pa.int32(), pa.int64())),
    ],
)
def test_a_layout_that_kernels_do_not_know_is_refused(kind: str, stored: pa.DataType) -> None:
    part = {"part": "hour"} if kind == "timestamp" else {}
    feature = {"encode": "bucketise", "boundaries": [0]} if kind == "float" else {"encode": "hash"}
    buckets = {} if kind == "float" else {"buckets": 9}
    spec, data = source({"c": kind}), dataset({"c": feature | buckets | part})
    encoder = Encoder(data, spec, FeatureLayout.of(data, spec.columns))
    columns = {"e": pa.array(["a"]), "y": pa.array([0], pa.int64()), "c": pa.nulls(1, stored)}
    with pytest.raises(DataError, match=r"column 'c' is stored as .* it cannot be encoded"):
        encoder.encode(pa.RecordBatch.from_pydict(columns), np.arange(1))
