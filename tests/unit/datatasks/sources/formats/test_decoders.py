"""Message formats: values, nulls, and messages that cannot be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.message_columns import AT, COLUMNS, NOTHING, ROW, decode

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats.decoder import Decoder
from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.formats.json_rows import JsonDecoder, json_object, json_value
from forebay.datatasks.sources.kafka.producer import ipc_message, json_message
from forebay.errors import ConfigError


def decoder(name: str, *columns: str) -> Decoder:
    return decoder_named(name, columns or list(COLUMNS), COLUMNS)


def test_json_values_nulls_and_missing_keys() -> None:
    messages = [json_message(ROW), b"{}", json_message(NOTHING), b'{ "i" : 7 ,\n "x": {"y": 1} }']
    decoded = decode(decoder("json"), messages)
    assert decoded.batch.to_pylist() == [ROW, NOTHING, NOTHING, {**NOTHING, "i": 7}]
    assert (decoded.messages.tolist(), decoded.rows.tolist()) == ([0, 1, 2, 3], [0] * 4)
    assert not decoded.bad_messages


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        *(('"2013-06-01T07:30:00.123456Z"', AT), ('"2013-06-01 07:30:00.123456"', AT)),
        ('"2013-06-01T09:30:00.123456+02:00"', AT),
        ("1370071800123", AT.replace(microsecond=123000)),
        *(('"2013-06-01"', datetime(2013, 6, 1, tzinfo=UTC)), ("null", None)),
    ],
)
def test_json_timestamps(text: str, wanted: datetime | None) -> None:
    reader = decoder("json", "t")
    message = f'{{"t": {text}}}'.encode()
    assert decode(reader, [message]).batch.column(0).to_pylist() == [wanted]
    assert decode(reader, [message] * 3).batch.column(0).to_pylist() == [wanted] * 3, "learnt form"
    mixed = decode(reader, [message, b'{"t": 0}', b'{"t": "1970-01-01"}'])
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert mixed.batch.column(0).to_pylist() == [wanted, epoch, epoch]


POISON = {
    "nothing": b"",
    "blanks": b"  \n",
    "a null, which ends the process inside Arrow": b"null",
    "a null behind an object": b'{"i": 1} null {}',
    "a null before an object": b'null {"i": 1}',
    "a null right behind an object": b'{"i": 1} null',
    "a digit behind an object": b'{"i": 1}5',
    "the first half of a text": b'{"s": "a}',
    "the second half of a text": b'{", "i": 1}',
    "a word for a float": b'{"f": "1.5"}',
    "a bool for a float": b'{"f": true}',
    "two objects": b'{"i": 1}{"i": 2}',
    "a number": b"5",
    "an unquoted key": b"{i: 1}",
    "no UTF-8": b'{"s": "\xff"}',
    "no UTF-8 in another column": b'{"x": "\xff"}',
    "half a surrogate pair": b'{"s": "\\ud800"}',
    "a fraction for an int": b'{"i": 1.5}',
    "a bool for an int": b'{"i": true}',
    "an int for a bool": b'{"b": 1}',
    "no time": b'{"t": "yesterday"}',
    "more digits than a float has": b'{"f": ' + b"1" * 400 + b"}",
    "more digits than a number has": b'{"x": ' + b"1" * 5000 + b"}",
    "a time too far": b'{"t": 99999999999999999}',
    "a word in a list of ints": b'{"li": [1, "x"]}',
    "deep nesting": b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "UTF-16": '{"i": 1}'.encode("utf-16"),
}


@pytest.mark.parametrize("poison", POISON)
def test_one_bad_json_message_leaves_the_others_alone(poison: str) -> None:
    good = json_message(ROW)
    decoded = decode(decoder("json"), [good, POISON[poison], good])
    assert (decoded.batch.to_pylist(), decoded.messages.tolist()) == ([ROW, ROW], [0, 2])
    assert list(decoded.bad_messages) == [1]
    assert decoded.bad_messages[1]


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["2013-06-01", "2013-06-01T00:00Z", "1e3", ""]),
)
_VALUES = st.one_of(_SCALARS, st.lists(_SCALARS, max_size=3), st.just({"y": [1]}))


_FAULTS = [b"", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u", b"\\ud800", b"\x00", b"\n"]
_FAULTS += [b"\xff", b"\xc3", b"\xed\xa0\x80", b"0", b"-", b"+", b".", b"e", b"1e400", b"NaN"]
_FAULTS.append(b"null")
_FOUR = st.integers(0, 9999)
_SECONDS = ["", ":59", ":60", ":00.1", ":00.123456", ":00.1234567", ":00,5", ":0"]
_ZONES = ["", "Z", "z", " Z", "+02", "-0230", "+23:59", "+24:00", "+02:30:15", "+2"]
_OTHERS = ["20130601", "2013-W10-1", "", "0001-01-01T00:00+02:00", "9999-12-31T23:59-02"]
_CLOCK = (st.sampled_from(["T", " ", "x", ""]), st.integers(0, 24), st.integers(0, 60))
_TEXT = "{:04}-{:02}-{:02}{}{:02}:{:02}{}{}"
_DAY = (_FOUR, st.integers(1, 12), st.integers(1, 31))
_TIMES = st.one_of(
    st.builds(_TEXT.format, *_DAY, *_CLOCK, st.sampled_from(_SECONDS), st.sampled_from(_ZONES)),
    st.builds("{:04}-{:02}-{:02}".format, _FOUR, st.integers(0, 13), st.integers(0, 32)),
    st.sampled_from(_OTHERS),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from([*COLUMNS, "x"]), _VALUES), max_size=4))
def test_the_fast_path_reads_as_the_definition(rows: list[dict[str, Any]]) -> None:
    require_as_defined([json.dumps(row).encode() for row in rows])


def require_as_defined(messages: list[bytes]) -> None:
    """Rows are those of the definition, and so are the reasons why others are none."""
    rows, reasons = [], {}
    for number, message in enumerate(messages):
        try:
            found = json_object(message)
            rows.append(
                {name: json_value(name, found.get(name), kind) for name, kind in COLUMNS.items()}
            )
        except ValueError as error:
            reasons[number] = str(error)[:200]
    together = decode(JsonDecoder(list(COLUMNS), COLUMNS), messages)
    assert (plain(together.batch), together.bad_messages) == (rows, reasons)


_DIGITS = st.text("0123456789", min_size=1, max_size=30)
_NUMBERS = st.builds(
    lambda sign, whole, fraction, exponent: f"{sign}{int(whole)}{fraction}{exponent}",
    st.sampled_from(["", "-"]),
    _DIGITS,
    st.one_of(st.just(""), _DIGITS.map(lambda text: f".{text}")),
    st.one_of(st.just(""), st.integers(-340, 320).map(lambda power: f"e{power}")),
)


@settings(max_examples=500, deadline=None)
@given(st.lists(_NUMBERS, min_size=1, max_size=5), st.sampled_from("if"))
def test_numbers_are_read_as_python_reads_them(texts: list[str], name: str) -> None:
    require_as_defined([f'{{"{name}": {text}}}'.encode() for text in texts])


@settings(max_examples=500, deadline=None)
@given(st.lists(_TIMES, min_size=1, max_size=4))
def test_times_are_read_as_python_reads_them(texts: list[str]) -> None:
    require_as_defined([json.dumps({"t": text}).encode() for text in texts])


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_changed_bytes_are_read_as_python_reads_them(data: st.DataObject) -> None:
    message = bytearray(json_message(ROW | {"x": {"y": [1.5e3, "\u00e4"]}}))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(message) - 1))
        message[at : at + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(_FAULTS))
    require_as_defined([json_message(ROW), bytes(message)])


def plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows with instants as microseconds: Arrow's calendar is longer than Python's."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist()


def test_arrow_messages_of_different_schemas() -> None:
    wide = pa.table({"x": [0], "i": pa.array([7], pa.int16()), "s": pa.array(["a"])})
    narrow = pa.table({"s": pa.array(["b", "c", "b"]).dictionary_encode(), "i": [1.0, None, 3.0]})
    other = pa.table({"s": pa.array(["z"]).dictionary_encode(), "i": [4.0]})
    messages = [ipc_message(each) for each in (wide, narrow, other, narrow.slice(0, 0))]
    decoded = decode(decoder("arrow-ipc", "i", "s"), messages)
    assert decoded.batch.to_pydict() == {"i": [7, 1, None, 3, 4], "s": ["a", "b", "c", "b", "z"]}
    assert (decoded.messages.tolist(), decoded.rows.tolist()) == ([0, 1, 1, 1, 2], [0, 0, 1, 2, 0])
    for alone in (messages[1:2], messages[3:]):
        assert len(decode(decoder("arrow-ipc", "i", "s"), alone).batch) in {0, 3}


def test_arrow_messages_that_cannot_be_read() -> None:
    good = ipc_message(pa.table({"i": [1, 2]}))
    tables = [{"j": [1]}, {"i": ["text"]}, {"i": [1.0, 2.5]}]
    messages = [b"junk", good, good[:-30], None, b""]
    messages += [ipc_message(pa.table(each)) for each in tables]
    decoded = decode(decoder("arrow-ipc", "i"), messages)
    assert decoded.batch.column(0).to_pylist() == [1, 2, 1, None]
    assert sorted(decoded.bad_messages) == [0, 2, 3, 4, 5, 6]
    assert "did you mean 'j'" in decoded.bad_messages[5]
    assert list(decoded.bad_rows) == [3]


@pytest.mark.parametrize("name", ["arrow-ipc", "json"])
def test_no_column_and_no_message(name: str) -> None:
    reader = decoder_named(name, [], COLUMNS)
    message = ipc_message(pa.table({"i": [1]})) if name == "arrow-ipc" else b'{"i": 1}'
    assert decode(reader, [message, message]).batch.num_rows == 2
    assert decode(decoder(name), []).batch.num_rows == 0


def test_an_unknown_format_names_the_known() -> None:
    with pytest.raises(ConfigError, match="arrow-ipc, json, avro, protobuf"):
        decoder("xml")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        *(("9007199254740992.0", 2**53), ("-9007199254740992.0", -(2**53))),
        *(("9007199254740994.0", None), ("1e300", None), ("9223372036854775807", 2**63 - 1)),
        *(("-9223372036854775808", -(2**63)), ("-9223372036854775809", None), ("2.0", 2)),
    ],
)
def test_json_ints_are_exact(text: str, wanted: int | None) -> None:
    decoded = decode(decoder("json", "i"), [f'{{"i": {text}}}'.encode(), b'{"i": 1.0}'])
    assert decoded.batch.column(0).to_pylist() == ([] if wanted is None else [wanted]) + [1]
    assert list(decoded.bad_messages) == ([0] if wanted is None else [])


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (None, "the message has no value"),
        (b"[]", "a JSON object is needed, not list"),
        (b"\xff", "not UTF-8 text: invalid start byte at byte 0"),
        (b"{", "not JSON: "),
        (b'{"i": "x"}', "column 'i' as int: \"x\""),
        (b'{"s": ' + b"1" * 58 + b"}", "column 's' as string: " + "1" * 58),
        (b'{"s": ' + b"1" * 60 + b"}", "column 's' as string: " + "1" * 60),
        (b'{"s": ' + b"1" * 61 + b"}", "column 's' as string: " + "1" * 60 + "…"),
        (b'{"li": 5}', "column 'li' as list<int>: 5"),
    ],
)
def test_why_a_json_message_cannot_be_read(message: bytes | None, says: str) -> None:
    decoded = decode(decoder("json"), [b"{}", message, b"{}"])
    assert decoded.messages.tolist() == [0, 2]
    (reason,) = decoded.bad_messages.values()
    assert reason.startswith(says)
    assert len(reason) <= 200
    if "…" in says or "1111" in says:
        assert reason == says


def test_messages_are_described_by_their_keys() -> None:
    reader = decoder("json")
    found = reader.described(b'{"a": 1, "b": "x", "c": null}')
    assert (found, reader.described(b"no json")) == ({"a": "int", "b": "str", "c": "NoneType"}, {})


def test_a_reason_is_cut_to_200_characters() -> None:
    name = "c" * 300
    reader = decoder_named("json", [name], {name: ColumnType.INT})
    found = decode(reader, [b'{"%s": "x"}' % name.encode()])
    assert [len(reason) for reason in found.bad_messages.values()] == [200]
