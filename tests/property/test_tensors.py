"""The SavedModel's TensorFlow operations give the numbers that the Encoder gives, on any value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.learning import dataset, record_batch, source

from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served import to_minibatch
from forebay.mixture.serving.raw_rows import raw_inputs
from forebay.mixture.serving.served_features import ServedFeatures
from forebay.mixture.tensorflow_start import start_tensorflow

COLUMNS = {"text": "string", "int": "int", "float": "float", "bool": "bool", "time": "timestamp"}
COLUMNS |= {"texts": "list<string>", "ints": "list<int>", "floats": "list<float>"}
COLUMNS |= {"two words": "string"}
FEATURES: dict[str, Any] = {
    "text": {"encode": "hash", "buckets": 2**31 - 1},
    "int": {"encode": "hash", "buckets": 10**6 + 3},
    "bool": {"encode": "hash", "buckets": 50},
    "texts": {"encode": "hash", "buckets": 2**20},
    "ints": {"encode": "hash", "buckets": 2**20},
    "two words": {"encode": "hash", "buckets": 2},
    "known text": {"encode": "vocabulary", "column": "text", "values": ["a", "ß", 7]},
    "known int": {"encode": "vocabulary", "column": "int", "values": [-1, 0, 2**40]},
    "known bool": {"encode": "vocabulary", "column": "bool", "values": ["true"]},
    "known texts": {"encode": "vocabulary", "column": "texts", "values": ["a", "b"]},
    "float": {"encode": "bucketise", "boundaries": [-1.5, 0, 1, 1e9]},
    "cut int": {"encode": "bucketise", "column": "int", "boundaries": [-(2.0**60), 0, 3]},
    "cut bool": {"encode": "bucketise", "column": "bool", "boundaries": [1]},
    "floats": {"encode": "bucketise", "boundaries": [0, 0.5]},
    "hour": {"encode": "bucketise", "column": "time", "part": "hour", "boundaries": [6, 18]},
    "weekday": {"encode": "hash", "column": "time", "part": "weekday", "buckets": 1000},
    "number": {"encode": "numeric", "column": "float", "mean": 0.1, "scale": 3, "missing": -7},
    "log": {"encode": "numeric", "column": "int", "transform": "log1p"},
    "truth": {"encode": "numeric", "column": "bool", "missing": 0.5},
    "cross": {"encode": "cross", "columns": ["text", "int", "bool"], "buckets": 2**30},
}
SPEC = source(COLUMNS)
DATA = dataset(FEATURES)
LAYOUT = FeatureLayout.of(DATA, SPEC.columns)
ENCODER = Encoder(DATA, SPEC, LAYOUT)
SERVED = ServedFeatures.of("mixture", LAYOUT.types, ["score"])

texts = st.text(st.characters(codec="utf-8"))
ints = st.integers(-(2**63), 2**63 - 1)
floats = st.floats()
times = st.datetimes(
    datetime(1900, 1, 1),  # noqa: DTZ001 - hypothesis asks for bounds without a zone
    datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def lists(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return nullable(st.lists(nullable(values), max_size=4))


rows = st.fixed_dictionaries(
    {
        "text": nullable(texts | st.sampled_from(["a", "ß", "7"])),
        "int": nullable(ints | st.sampled_from([-1, 0, 2**40, -(2**63), 2**63 - 1])),
        "float": nullable(floats),
        "bool": nullable(st.booleans()),
        "time": nullable(times),
        "texts": lists(texts),
        "ints": lists(ints),
        "floats": lists(floats),
        "two words": nullable(texts),
    }
)
NULL_ROW: dict[str, Any] = dict.fromkeys(COLUMNS)


@pytest.fixture(scope="module")
def encode_in_tensorflow() -> Any:
    start_tensorflow(2)
    import tensorflow as tf

    from forebay.mixture.features.tensors import RawEncoder, input_spec

    encoder = RawEncoder(LAYOUT)
    specs = {s.input: input_spec(s.type, s.input) for s in SERVED.columns.values()}

    def encode(**raw: Any) -> Any:
        return encoder.encode({c: raw[s.input] for c, s in SERVED.columns.items()})

    graph = tf.function(encode).get_concrete_function(**specs)
    return lambda raw: graph(**{k: tf.constant(v, specs[k].dtype) for k, v in raw.items()})


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"time": row["time"].isoformat() if row["time"] else None}


@settings(max_examples=100, deadline=None)
@given(st.lists(rows, min_size=1, max_size=6))
@example([NULL_ROW])
@example([NULL_ROW | {"float": -5e-324}, NULL_ROW | {"float": 1e300}])
@example(
    [NULL_ROW | {"float": -0.0, "time": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)}]
)
def test_python_and_tensorflow_agree(
    encode_in_tensorflow: Any, drawn: list[dict[str, Any]]
) -> None:
    columns = {name: [row[name] for row in drawn] for name in COLUMNS}
    encoded = ENCODER.encode(record_batch(SPEC, columns), np.arange(len(drawn)))
    wanted = to_minibatch(encoded.batch, [(0, len(drawn))], "batch", LAYOUT)
    dense, ids, found_lists = encode_in_tensorflow(raw_inputs(SERVED, [as_json(r) for r in drawn]))
    np.testing.assert_allclose(dense.numpy(), wanted.dense, rtol=1e-6, atol=1e-30)
    np.testing.assert_array_equal(ids.numpy(), wanted.ids)
    for (splits, values), (wanted_splits, wanted_values) in zip(
        found_lists, wanted.lists, strict=True
    ):
        np.testing.assert_array_equal(splits.numpy(), wanted_splits)
        np.testing.assert_array_equal(values.numpy(), wanted_values)
