"""Arrow messages of strangers: what is refused, and how much memory decoding may take."""

from __future__ import annotations

import functools
import itertools
import os
import re
import struct
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from support.cpu_limits import cpu_limit
from support.hostile import bombs, shared_parts
from support.hostile.bombs import message
from support.memory_peak import MemoryPeak

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats import arrow_ipc
from forebay.datatasks.sources.formats.arrow_ipc import ArrowDecoder
from forebay.datatasks.sources.formats.decoder import Decoded, MessageLimits
from forebay.datatasks.sources.formats.ipc_metadata import (
    MetadataError,
    Table,
    require_little_endian,
)

DECLARED = {"i": ColumnType.INT, "x": ColumnType.STRING, "f": ColumnType.FLOAT}
DECLARED |= {"li": ColumnType.LIST_INT, "lf": ColumnType.LIST_FLOAT, "ls": ColumnType.LIST_STRING}
ONE = pa.array([7])


@pytest.fixture
def taken() -> Iterator[Callable[[], int]]:
    """The most bytes that Arrow has held since the test began."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        yield pool.max_memory
    finally:
        pa.set_memory_pool(before)


def decode(
    values: list[bytes | None], *columns: str, limits: MessageLimits | None = None
) -> Decoded:
    (found,) = ArrowDecoder(columns, DECLARED, limits or MessageLimits()).decode(values)
    return found


def refusal(value: bytes, *columns: str) -> str:
    """Why one message is refused; one before it and one after it are not."""
    good = message({name: pa.nulls(1) for name in columns})
    found = decode([good, value, good], *columns)
    assert found.messages.tolist() == [0, 2]
    assert found.end == (3, 0)
    assert not found.bad_rows
    return found.bad_messages[1]


@pytest.mark.guarantee(
    "null views or wrong offsets in a Kafka message or log segment would make Arrow access "
    "memory out of bounds",
    "refused before any value is used: red with its place, or dead letters by policy",
)
def test_sizes_of_null_views_are_never_added_up() -> None:
    value = bombs.overflowing_views()
    assert len(value) < 8000
    with pa.ipc.open_stream(value) as reader:
        reader.read_all().validate(full=True)
    assert "column 'x' is stored as string_view" in refusal(value, "x")


_WORDS = pa.array(["a"])
VIEWS = {
    "x": _WORDS.cast(pa.string_view()),
    "ls": pa.array([["a"]], pa.list_(pa.string_view())),
    "li": pa.array([[1]], pa.list_view(pa.int64())),
    "lf": pa.array([[1.0]], pa.large_list_view(pa.float64())),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_refused_at_any_depth(name: str) -> None:
    reason = refusal(message({name: VIEWS[name]}), name)
    assert re.search(r"(string|list)_view(<.*>)? is not read, since Arrow does not", reason)


def test_views_in_dictionaries_are_refused() -> None:
    views = _WORDS.cast(pa.string_view())
    value = message({"x": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), views)})
    assert "string_view is not read" in refusal(value, "x")


def test_run_ends_are_refused() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), ONE)
    assert "cannot be read as int" in refusal(message({"i": runs}), "i")


def test_columns_that_nobody_declared_may_hold_anything() -> None:
    columns = VIEWS | {
        "i": ONE,
        "struct": pa.StructArray.from_arrays([VIEWS["x"], VIEWS["ls"]], ["a", "b"]),
        "words": _WORDS.cast(pa.string_view()).dictionary_encode(),
        "union": pa.UnionArray.from_dense(
            pa.array([0], pa.int8()), pa.array([0], pa.int32()), [_WORDS]
        ),
    }
    assert decode([message(columns)], "i").batch.to_pydict() == {"i": [7]}


@functools.cache
def bomb(name: str) -> bytes:
    made: dict[str, Callable[[], bytes]] = {
        "rows of nulls": lambda: message({"x": pa.nulls(10**8)}),
        "nulls in a list": lambda: message(
            {"li": pa.ListArray.from_arrays(pa.array([0, 10**9], pa.int32()), pa.nulls(10**9))}
        ),
        "a wide list": lambda: message(
            {"li": pa.FixedSizeListArray.from_arrays(pa.nulls(2 * 10**9), 10**9)}
        ),
        "compressed": lambda: message({"lf": bombs.long_list()}, "zstd"),
        "a long dictionary": lambda: message({"x": bombs.long_dictionary()}, "zstd"),
        "a text in many rows": lambda: message({"x": bombs.repeated_text()}),
        "a dictionary that grows": bombs.grown_dictionaries,
    }
    return made[name]()


_BYTES_MAX = "message_bytes_max is 67,108,864"
BOMBS = {
    "rows of nulls": ("x", "100,000,000 rows, and message_rows_max is 1,000,000"),
    **dict.fromkeys(("nulls in a list", "a wide list"), ("li", _BYTES_MAX)),
    "compressed": ("lf", "takes 800,0"),
    "a long dictionary": ("x", "takes 314,57"),
    "a text in many rows": ("x", "takes 104,85"),
    "a dictionary that grows": ("x", _BYTES_MAX),
}


@pytest.mark.guarantee(
    "a small Kafka message takes much memory when decoded (nulls, compression, dictionaries, JSON)",
    "refused before any value is used: red with its place, or dead letters by policy, before "
    "the memory is taken; undeclared columns are not decoded",
)
@pytest.mark.parametrize("name", BOMBS)
def test_what_is_too_large_is_not_decoded(name: str, taken: Callable[[], int]) -> None:
    column, says = BOMBS[name]
    value = bomb(name)
    before = taken()
    assert says in refusal(value, column)
    assert taken() - before < 8 << 20


@pytest.mark.parametrize(
    "name", ["compressed", "a long dictionary", "nulls in a list", "a text in many rows"]
)
def test_what_nobody_declared_is_not_decoded(name: str, taken: Callable[[], int]) -> None:
    other = pa.ipc.open_stream(bomb(name)).schema.names[0]
    with pa.ipc.open_stream(bomb(name)) as reader:
        columns = reader.read_all().rename_columns(["bomb"]).slice(0, 1).combine_chunks()
    value = message({"i": ONE, "bomb": columns["bomb"].chunk(0), "x": _WORDS}, "zstd")
    before = taken()
    assert decode([value], "x", "i").batch.to_pydict() == {"x": ["a"], "i": [7]}, other
    assert taken() - before < 8 << 20


def test_several_messages_take_no_more_than_a_few(taken: Callable[[], int]) -> None:
    """Each is within the limits; all of them together would take a gigabyte."""
    value = message({"f": pa.array(np.zeros(1_000_000))}, "zstd")
    before, rows, end = taken(), 0, (0, 0)
    for decoded in ArrowDecoder(["f"], DECLARED).decode([value] * 50):
        assert decoded.batch.num_rows <= 2 * arrow_ipc._PIECE_ROWS
        assert int(decoded.rows[0]) == end[1] or not end[1]
        rows, end = rows + decoded.batch.num_rows, decoded.end
    assert (rows, end) == (50_000_000, (50, 0))
    assert taken() - before < 200 << 20


def test_rows_of_pieces_are_those_of_their_messages() -> None:
    counts = [0, 30_000, 1, 0, 40_000, 5]
    values = [message({"i": pa.array(np.arange(count))}) for count in counts]
    values.insert(2, b"junk")
    pieces = list(ArrowDecoder(["i"], DECLARED).decode(values))
    assert len(pieces) > 2
    for before, piece in itertools.pairwise(pieces):
        assert before.end == (int(piece.messages[0]), int(piece.rows[0]))
    assert pieces[-1].end == (7, 0)
    rows = np.concatenate([piece.rows for piece in pieces])
    assert np.array_equal(rows, np.concatenate([np.arange(count) for count in counts]))
    values_read = [n for piece in pieces for n in piece.batch.column("i").to_pylist()]
    assert values_read == rows.tolist()
    assert [list(piece.bad_messages) for piece in pieces if piece.bad_messages] == [[2]]


@pytest.mark.parametrize("rows", [9, 10, 11])
def test_limits_are_the_most_that_is_read(rows: int) -> None:
    value = message({"i": pa.array(range(rows))})
    found = decode([value], "i", limits=MessageLimits(rows=10))
    assert found.batch.num_rows == (rows if rows <= 10 else 0)
    assert list(found.bad_messages.values()) == (
        [] if rows <= 10 else ["it has 11 rows, and message_rows_max is 10"]
    )


def test_a_message_that_is_stored_too_large_is_not_looked_at() -> None:
    found = decode([bytes(1001)], "i", limits=MessageLimits(bytes=1000))
    assert found.bad_messages == {0: "it has 1,001 bytes, and message_bytes_max is 1,000"}


def test_rows_of_no_column_are_counted_without_decoding() -> None:
    value = message({"bomb": pa.nulls(5)})
    found = decode([value, bomb("rows of nulls"), value])
    assert (found.batch.num_rows, found.messages.tolist()) == (10, [0] * 5 + [2] * 5)
    assert list(found.bad_messages) == [1]


def test_values_of_another_byte_order_are_refused() -> None:
    table = struct.pack("<HHHH", 6, 6, 4, 0) + struct.pack("<iH", 8, 1)
    with pytest.raises(MetadataError, match="its byte order is big-endian"):
        require_little_endian(Table(table, 8))
    require_little_endian(Table(table[:-2] + bytes(2), 8))
    require_little_endian(Table(struct.pack("<HHHH", 4, 4, 0, 0) + struct.pack("<i", 8), 8))


def test_schemas_that_differ_by_metadata_alone_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[pa.Schema] = []
    real = arrow_ipc.stored_problem

    def problem(schema: pa.Schema, name: str, declared: ColumnType) -> str:
        looked_at.append(schema)
        return real(schema, name, declared)

    monkeypatch.setattr(arrow_ipc, "stored_problem", problem)
    values = []
    for rows in range(1, 6):
        batch = pa.record_batch({"i": pa.array(range(rows))})
        batch = batch.replace_schema_metadata({"pandas": f'{{"stop": {rows}}}'})
        values.append(bombs.stream([batch], batch.schema))
    assert (decode(values, "i").batch.num_rows, len(looked_at)) == (15, 1)


SHARED = {
    "texts": shared_parts.shared_texts,
    "names": shared_parts.shared_names,
    "zones": shared_parts.shared_zones,
    "columns": shared_parts.shared_columns,
    "numbers": lambda: shared_parts.shared_numbers(4000, 32_000),
}


@pytest.mark.parametrize("name", SHARED)
def test_parts_that_metadata_share_are_not_copied_for_each(name: str) -> None:
    value = SHARED[name]()
    assert len(value) < 1_100_000
    memory = MemoryPeak(os.getpid())
    with cpu_limit(name, 2):
        found = decode([value], "i")
        described = ArrowDecoder(["i"], DECLARED).described(value)
    said = found.bad_messages[0]
    assert "used again and again" in said or "requires a buffer" in said
    assert described == {} or name == "numbers"
    assert memory.growth < 64 << 20
