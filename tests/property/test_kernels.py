"""Kernels give the numbers that plain Python gives, however Arrow stores the values."""

from __future__ import annotations

import math
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import Any

import farmhash
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.learning import dataset, record_batch, source

from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.feature_rows import event_ids
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.plans import slots_of

INT_NULL = -(2**63)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BUCKETS = 2**31 - 1
WORDS = ["a", "ß", "7", "x" * 40]
BOUNDARIES = [-1.5, 0.0, 3.0]
COLUMNS = {"t": "string", "i": "int", "f": "float", "b": "bool", "at": "timestamp"}
COLUMNS |= {"l": "list<int>"}
LISTS = {"words": "list<string>"}
FEATURES: dict[str, Any] = {
    "t": {"encode": "hash", "buckets": BUCKETS},
    "i": {"encode": "hash", "buckets": BUCKETS},
    "b": {"encode": "hash", "buckets": 2},
    "word": {"encode": "vocabulary", "column": "t", "values": WORDS},
    "cut": {"encode": "bucketise", "column": "f", "boundaries": BOUNDARIES},
    "hour": {"encode": "hash", "column": "at", "part": "hour", "buckets": 50},
    "cross": {"encode": "cross", "columns": ["t", "i", "b"], "buckets": BUCKETS},
    "f": {"encode": "numeric", "mean": 0.5, "scale": 3, "missing": -7},
    "log": {"encode": "numeric", "column": "i", "transform": "log1p"},
    "l": {"encode": "hash", "buckets": BUCKETS},
    "words": {"encode": "vocabulary", "values": WORDS},
}
SPEC = source(COLUMNS | LISTS)
DATA = dataset(FEATURES)
LAYOUT = FeatureLayout.of(DATA, SPEC.columns)
ENCODER = Encoder(DATA, SPEC, LAYOUT)

# Lengths on both sides of every border in the hash: 0, 3, 4, 7, 8, 16, 32, 64, and several rounds.
texts = st.text(st.characters(codec="utf-8"), max_size=6) | st.integers(0, 300).map("x".__mul__)
ints = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 10**9)
powers = st.builds(lambda k, d, s: s * (10**k + d), *(st.integers(0, 18), st.integers(-1, 1)),
                   st.sampled_from([1, -1]))  # fmt: skip
floats = st.floats(width=32) | st.sampled_from([0.0, -1.5, 3.0])
times = st.integers(-(10**15), 4 * 10**15)


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


rows = st.fixed_dictionaries(
    {
        "t": nullable(texts | st.sampled_from(WORDS)),
        "i": nullable(ints | powers),
        "f": nullable(floats),
        "b": nullable(st.booleans()),
        "at": nullable(times),
        "l": nullable(st.lists(nullable(ints | powers), max_size=5)),
        "words": nullable(st.lists(nullable(texts | st.sampled_from(WORDS)), max_size=4)),
    }
)
TYPES_OF_OTHERS = {"e": pa.string(), "y": pa.int64()}
NULL_ROW: dict[str, Any] = dict.fromkeys([*COLUMNS, *LISTS])
TYPES: dict[str, list[pa.DataType]] = {
    "t": [pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())],
    "i": [pa.int64()],
    "f": [pa.float32(), pa.float64()],
    "b": [pa.bool_()],
    "at": [pa.timestamp("us", tz="UTC")],
    "l": [pa.list_(pa.int64())],
    "words": [pa.list_(pa.string()), pa.list_(pa.large_string())],
}


def hashed(text: str | None, buckets: int = BUCKETS) -> int:
    return 1 + farmhash.fingerprint64(text) % (buckets - 1) if text else 0


def int_text(value: int | None) -> str:
    return "" if value is None or value == INT_NULL else str(value)


def known(text: str | None) -> int:
    return 0 if not text else WORDS.index(text) + 2 if text in WORDS else 1


def wanted_ids(row: dict[str, Any]) -> list[int]:
    truth = "" if row["b"] is None else str(row["b"]).lower()
    number = row["f"]
    hour = None if row["at"] is None else (EPOCH + timedelta(microseconds=row["at"])).hour
    joined = "\x1f".join([row["t"] or "", int_text(row["i"]), truth])
    return [
        hashed(row["t"]),
        hashed(int_text(row["i"])),
        hashed(truth, 2),
        known(row["t"]),
        0 if number is None or math.isnan(number) else 1 + bisect_right(BOUNDARIES, number),
        hashed(int_text(hour), 50),
        1 + farmhash.fingerprint64(joined) % (BUCKETS - 1),
    ]


def wanted_numbers(row: dict[str, Any]) -> list[float]:
    number, whole = row["f"], row["i"]
    is_null = number is None or math.isnan(number)
    plain = -7.0 if is_null else (number - 0.5) / 3
    log = 0.0 if whole in (None, INT_NULL) else math.log1p(max(float(whole), 0.0))
    return [plain, log]


def stored(drawn: list[dict[str, Any]], draw: Any) -> pa.RecordBatch:
    """The rows in the middle of others, each column as one of its types."""
    padded = [NULL_ROW, *drawn, NULL_ROW]
    arrays = {
        name: pa.array([row[name] for row in padded], draw(st.sampled_from(kinds)))
        for name, kinds in TYPES.items()
    }
    names = [str(number) for number in range(len(padded))]
    others = {"e": pa.array(names), "y": pa.array([0] * len(padded), pa.int64())}
    return pa.RecordBatch.from_pydict(arrays | others).slice(1, len(drawn))


@settings(max_examples=200, deadline=None)
@given(st.lists(rows, max_size=20), st.data())
def test_every_encoding_equals_plain_python(drawn: list[dict[str, Any]], data: Any) -> None:
    found = ENCODER.encode(stored(drawn, data.draw), np.arange(len(drawn))).batch
    assert found.column("ids").to_pylist() == [wanted_ids(row) for row in drawn]
    with np.errstate(over="ignore"):
        wanted = np.array([wanted_numbers(row) for row in drawn], np.float64).astype(np.float32)
    np.testing.assert_allclose(
        np.array(found.column("dense").to_pylist(), np.float32).reshape(-1, 2),
        wanted.reshape(-1, 2),
        rtol=1e-7,
    )
    lists = [[hashed(int_text(n)) for n in row["l"] or [] if int_text(n)] for row in drawn]
    assert found.column("feature.l").to_pylist() == lists
    words = [[known(word) for word in row["words"] or [] if word] for row in drawn]
    assert found.column("feature.words").to_pylist() == words


@settings(max_examples=200, deadline=None)
@given(st.lists(nullable(texts), min_size=1, max_size=9), st.lists(nullable(ints | powers)))
def test_fingerprints_are_those_of_farmhash(
    some: list[str | None], numbers: list[int | None]
) -> None:
    """As `tf.strings.to_hash_bucket_fast` takes them too: test_tensors.py compares those."""
    whole = (numbers + [None] * len(some))[: len(some)]
    kinds = [SPEC.columns["t"], SPEC.columns["i"]]
    columns = [pa.array(some, pa.string()), pa.array(whole, pa.int64())]
    joined = [f"{text or ''}\x1f{int_text(n)}" for text, n in zip(some, whole, strict=True)]
    wanted = np.array([farmhash.fingerprint64(text) for text in joined], np.uint64)
    found = event_ids(list(zip(columns, kinds, strict=True))).to_numpy()
    np.testing.assert_array_equal(found.view(np.uint64), wanted)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([(0, 10**8), (10**8, 10**15), (10**7, 10**9), (10**14, 10**16), (-5, 10**12)]),
    st.data(),
)
def test_event_ids_are_those_of_farmhash_whatever_their_size(
    bounds: tuple[int, int], data: st.DataObject
) -> None:
    """Where all are of one size they are hashed together, else one by one."""
    low, high = bounds
    near = st.builds(lambda k, d: min(max(10**k + d, low), high - 1), st.integers(0, 16),
                     st.integers(-2, 2))  # fmt: skip
    halves = st.builds(lambda k, d: min(max(k * 10**8 + d, low), high - 1),
                       st.integers(0, 10**7), st.integers(-1, 1))  # fmt: skip
    some = data.draw(st.lists(st.integers(low, high - 1) | near | halves, min_size=1, max_size=60))
    column = pa.array([0, *some], pa.int64()).slice(1)
    found = event_ids([(column, SPEC.columns["i"])]).to_numpy()
    wanted = np.array([farmhash.fingerprint64(str(n)) for n in some], np.uint64)
    np.testing.assert_array_equal(found.view(np.uint64), wanted)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_floats_without_nulls_are_the_same_bits_as_beside_a_null(data: st.DataObject) -> None:
    """Columns without a null are encoded by a loop of their own, and turned four at a time."""
    names = [f"x{number}" for number in range(data.draw(st.integers(1, 37)))]
    scalings = st.sampled_from([{}, {"mean": 0.5}, {"scale": 3}, {"mean": -0.0, "scale": 1}])
    features = {
        name: {"encode": "numeric", "missing": -7}
        | data.draw(st.sampled_from([{}, {"transform": "log1p"}]))
        | data.draw(scalings)
        for name in names
    }
    spec, declared = source(dict.fromkeys(names, "float")), dataset(features)
    encoder = Encoder(declared, spec, FeatureLayout.of(declared, spec.columns))
    rows = data.draw(st.integers(0, 9) | st.integers(1000, 1100))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    odd = np.array([0.0, -0.0, 1e-40, -1.5, 1e30, np.inf, -np.inf, np.nan])
    arrays, with_null = {}, {}
    for name in names:
        values = random.lognormal(0, 3, rows) * random.choice([-1, 1, 1, 1], rows)
        values = np.where(random.random(rows) < 0.1, random.choice(odd, rows), values)
        kind = data.draw(st.sampled_from([pa.float32(), pa.float64()]))
        arrays[name] = pa.array(values.astype(kind.to_pandas_dtype()))
        with_null[name] = pa.concat_arrays([arrays[name], pa.nulls(1, kind)])
    for name in ("e", "y"):
        arrays[name] = pa.array(np.zeros(rows, np.int64)).cast(TYPES_OF_OTHERS[name])
        with_null[name] = pa.array(np.zeros(rows + 1, np.int64)).cast(TYPES_OF_OTHERS[name])
    plain, beside = (
        encoder.encode(pa.RecordBatch.from_pydict(each), np.arange(len(each["y"])))
        for each in (arrays, with_null)
    )
    found, wanted = (
        each.batch.column("dense").flatten().to_numpy().view(np.uint32) for each in (plain, beside)
    )
    np.testing.assert_array_equal(found, wanted[: len(found)])
    assert set(plain.bad) == set(beside.bad) - {rows}


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 63, 64, 65, 200])
@pytest.mark.parametrize("first", [0, 1, 5, 8])
def test_a_null_is_found_wherever_it_is(rows: int, first: int) -> None:
    """Kernels look first whether there is any."""
    for place in [None, 0, rows // 2, rows - 1]:
        column: list[float | None] = [1.0] * (rows + first + 70)
        if place is not None:
            column[first + place] = None
        columns = {name: [None] * len(column) for name in TYPES} | {"f": column}
        batch = record_batch(SPEC, columns).slice(first, rows)
        dense = ENCODER.encode(batch, np.arange(rows)).batch.column("dense").to_pylist()
        wanted = [-7.0 if row == place else np.float32(0.5 / 3) for row in range(rows)]
        assert [row[0] for row in dense] == wanted


def test_a_text_that_is_longer_than_the_first_guess_is_hashed_whole() -> None:
    text = "forebay" * 100_000
    found = event_ids([(pa.array([text, "a", None]), SPEC.columns["t"])]).to_numpy()
    wanted = [farmhash.fingerprint64(each) for each in (text, "a", "")]
    assert found.view(np.uint64).tolist() == wanted


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]
)
def test_whole_numbers_of_any_width_have_the_same_text(kind: pa.DataType) -> None:
    signed = not str(kind).startswith("u")
    bits = kind.bit_width - signed
    numbers = [0, 9, 10, 2**bits - 1, None, *([-1, 1 - 2**bits] if signed else [])]
    found = event_ids([(pa.array(numbers, kind), SPEC.columns["i"])]).to_numpy()
    wanted = [farmhash.fingerprint64(int_text(n)) for n in numbers]
    assert found.view(np.uint64).tolist() == wanted


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 7), max_size=50))
def test_every_fingerprint_has_a_slot_and_half_of_them_are_free(found: list[int]) -> None:
    slots = slots_of(np.array(found, np.uint64))
    assert sorted(slots[slots > 0].tolist()) == list(range(1, len(found) + 1))
    assert len(slots) >= 2 * len(found)
    assert len(slots) & (len(slots) - 1) == 0
