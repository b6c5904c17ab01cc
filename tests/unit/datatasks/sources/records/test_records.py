"""Records of files: the outcome for one does not depend on its neighbours, and none is silent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.record_files import WRITERS, framed, json_rows, tf_example, tf_rows
from support.record_mutants import mutants, outcome

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats.json_rows import JsonDecoder
from forebay.datatasks.sources.records import blocks, json_lines, lines, tf_examples
from forebay.datatasks.sources.records.csv_lines import CsvLines
from forebay.datatasks.sources.records.json_lines import JsonLines
from forebay.datatasks.sources.records.kind import CsvKind, JsonKind, TfrecordKind
from forebay.datatasks.sources.records.tf_examples import TfExamples
from forebay.testing.source_data import COLUMNS, rows

T = ColumnType
DECLARED: Mapping[str, ColumnType] = {
    "i": T.INT, "f": T.FLOAT, "s": T.STRING, "b": T.BOOL, "t": T.TIMESTAMP,
    "ls": T.LIST_STRING, "li": T.LIST_INT, "lf": T.LIST_FLOAT,
}  # fmt: skip


def json_outcome(lines: list[bytes]) -> list[Any]:
    records = JsonLines(list(DECLARED), DECLARED, JsonKind.Options(path="x"))
    return [reason or row for row, reason in outcome(records, b"\n".join(lines))]


def csv_records(declared: Mapping[str, ColumnType] = DECLARED, **options: Any) -> CsvLines:
    return CsvLines(list(declared), declared, CsvKind.Options(path="x", **options))


ODD = [
    b'{"i": 1.0}', b'{"i": 9223372036854775808}', b'{"i": true}', b'{"i": "1"}',
    b'{"i": 1, "i": 2}',
    b'{"f": 1e400}', b'{"f": NaN}', b'{"f": Infinity}', b'{"f": -NaN}', b'{"x": Inf}',
    b'{"f": "1"}',
    b'{"f": ' + b"1" * 400 + b"}", b'{"f": ' + b"1" * 4301 + b"}", b'{"x": ' + b"1" * 4400 + b"}",
    b'{"s": "\xff"}', b'{"x": "\xff"}', b'{"s": "\\ud800"}', b'{"s": "a\x01"}', b'{"s": 5}',
    b'{"t": "2026-03-01"}', b'{"t": "2026-03-01T12:00"}', b'{"t": 1772366400000}', b'{"t": "soon"}',
    b'{"t": "20260301"}', b'{"t": "10000-01-01T00:00:00Z"}', b'{"t": 1.5}', b'{"t": null}',
    b'{"i":1}{"i":2}', b'{"i":',
    b"1}", b'{"s":"{', b'}"}', b"[1]", b"null", b"  {}", b'{"i":1}\0}', b'{"i":1}\0x', b"{}\r",
    b" ",
    b'{"x":' + b"[" * 1200 + b"]" * 1200 + b"}", b'{"li": [1, null, 2.5]}', b'{"li": 3}',
    b'{"ls": ["a", null]}', b'{"lf": [1, 2.5, null, NaN]}', b'{"x": {"y": [{}]}}',
    b'{"\\u0069": 4}',
]  # fmt: skip
GOOD = json.dumps(
    {"i": 7, "f": 0.5, "s": "wörd", "t": "2026-03-01T12:00:30Z", "ls": ["a"]}
).encode()


def definition(line: bytes) -> Any:
    """As a message of Kafka would be read."""
    (found,) = JsonDecoder(list(DECLARED), DECLARED).decode([line])
    return next(iter(found.bad_messages.values()), None) or found.batch.to_pylist()[0]


@given(st.lists(st.sampled_from([*ODD, GOOD, GOOD, GOOD, b"{}"]), min_size=1, max_size=6))
@example([GOOD, *ODD])
@settings(max_examples=150)
def test_a_json_row_is_what_it_would_be_as_a_message(lines: list[bytes]) -> None:
    expected = [str(definition(line.removesuffix(b"\r"))) for line in lines]
    assert [str(each) for each in json_outcome(lines)] == expected


@pytest.mark.parametrize("line", ODD)
def test_each_odd_row_is_read_alike_alone_and_among_good_ones(line: bytes) -> None:
    alone, among = json_outcome([line]), json_outcome([GOOD, line, GOOD])
    assert str(alone[0]) == str(among[1]) == str(definition(line.removesuffix(b"\r")))


def test_good_rows_are_read_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JsonDecoder, "decode", None)
    numbers = b'{"t": 1772366400000}'
    assert len(json_outcome([GOOD, b"", b'{"x": {"y": [1]}}', GOOD])) == 3
    assert len(json_outcome([numbers, numbers])) == 2
    long = json.dumps({"s": "x" * 5000, "li": list(range(500))}).encode()
    assert len(json_outcome([long, long])) == 2


def test_lines_are_numbered_as_an_editor_does(monkeypatch: pytest.MonkeyPatch) -> None:
    records = JsonLines([], {}, JsonKind.Options(path="x"))
    found = list(records.blocks(iter([b"\xef\xbb\xbf{}\r\n\n{", b"}\n\n\n{}"])))
    assert [each.places.tolist() for each in found] == [[1], [3], [6]]
    assert [each.first for each in found] == [0, 1, 2]
    assert b"".join(value for each in found for value in each.values()) == b"{}{}{}"


@pytest.mark.parametrize("kind", ["json", "tfrecord"])
def test_a_record_that_is_too_long_is_a_bad_one_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a piece holds it and what follows: blocks of Snappy may be large."""
    for module in (blocks, json_lines, lines, tf_examples):
        monkeypatch.setattr(module, "RECORD_BYTES_MAX", 50, raising=False)
    content = WRITERS[kind](pa.table({"i": [1, 2, 3, 4], "s": [None, "x" * 200] * 2}))
    for step in (7, 60, 1000):
        if kind == "json":
            found = outcome(
                JsonLines(["i"], DECLARED, JsonKind.Options(path="x")), content.strip(), step
            )
        else:
            found = outcome(
                TfExamples(["i"], DECLARED, TfrecordKind.Options(path="x")), content, step
            )
        assert [row and row["i"] for row, _ in found] == [1, None, 3, None]
        assert ["at most 50 are read" in reason for _, reason in found] == [False, True] * 2


FIELDS = ["1", " 2 ", "-3", "1.5", "0x10", "+1", "007", "nan", "1e5", "1e400", "x", "", '"q"',
          '"a""b"', "20260301", "20260301T10", "1704010100000",
          'a"b', '"open', "a\rb", "1,2", "2026-03-01", "1772366400000", "2026-03-01T00:00:00+01:00",
          "true", "TRUE", "yes", "1|2", "1||3", "a|b", "|", "\xff", "wörd", " "]  # fmt: skip


@given(
    st.lists(
        st.lists(st.sampled_from(FIELDS), min_size=3, max_size=3).map(",".join),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.sampled_from(list(DECLARED.values())), min_size=3, max_size=3),
)
@settings(max_examples=200)
def test_a_csv_row_is_read_alike_alone_and_among_others(
    lines: list[str], types: list[ColumnType]
) -> None:
    declared = dict(zip("abc", types, strict=True))
    kept = [line.encode("latin-1" if "\xff" in line else "utf-8") for line in lines]
    kept = [line for line in kept if line]

    def read(some: list[bytes]) -> list[str]:
        records = csv_records(declared, names=["a", "b", "c"])
        return [str(each) for each in outcome(records, b"\n".join(some))]

    assert read(kept) == [each for line in kept for each in read([line])]


def test_a_mark_of_the_byte_order_is_text_in_all_lines_but_the_first() -> None:
    """Wherever a piece begins: files that were joined have such lines."""
    content = "\ufeffs\na\n\ufeffb\nc\n".encode()
    for step in (1, 100):
        found = outcome(csv_records({"s": T.STRING}), content, step)
        assert [row["s"] for row, _ in found] == ["a", "\ufeffb", "c"]


def test_a_carriage_return_before_the_end_of_a_line_is_no_end() -> None:
    content = b"a\r\r\nb\r\n"
    records = csv_records({"s": T.STRING}, names=["s"])
    (block,) = records.blocks(iter([content]))
    for part in (block, block.part(0, 1)):
        assert list(records.decode_all(part).bad) == [0]


def test_other_texts_are_nulls_too() -> None:
    records = csv_records({"i": T.INT, "s": T.STRING}, nulls=["NA"])
    found = [list(row.values()) for row, _ in outcome(records, b"i,s\n,\nNA,NA\n1,x\n")]
    assert found == [[None, None], [None, None], [1, "x"]]


def test_what_a_csv_row_holds() -> None:
    content = (
        b"\xef\xbb\xbfs,i,f,b,t,ls,li,lf\r\n"
        b'"a, ""b""",12,1.5,true,2026-03-01T12:00:30Z,x|y,1||3,0.5\r\n'
        b",,,,,,,\r\n"
        b"\r\n"
        b"only,two\r\n"
        b'x,1,2,0,1772366400000,,,"\r\n'
    )
    first, empty, short, open_quote = outcome(csv_records(), content)
    assert first[0] | {"t": str(first[0]["t"])} == {
        "i": 12, "f": 1.5, "s": 'a, "b"', "b": True, "t": "2026-03-01 12:00:30+00:00",
        "ls": ["x", "y"], "li": [1, None, 3], "lf": [0.5],
    }  # fmt: skip
    assert empty == (dict.fromkeys(DECLARED), "")
    assert short[1] == "it has 2 fields, and there are 8"
    assert "a quoted field does not end" in open_quote[1]


def test_lines_that_are_no_rows_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each by a search, and not their neighbours: many texts begin with a quote."""
    reads: list[int] = []
    read = CsvLines._read

    def counted(self: CsvLines, *arguments: Any) -> Any:
        reads.append(1)
        return read(self, *arguments)

    monkeypatch.setattr(CsvLines, "_read", counted)
    lines = [*[b'1,"open', b'2,"a,""b"""', b'3,a"b', b"4,\xff", b"5,a\rb"] * 40]
    found = outcome(csv_records({"i": T.INT, "s": T.STRING}, names=["i", "s"]), b"\n".join(lines))
    assert [row and row["i"] for row, _ in found] == [None, 2, 3, None, None] * 40
    assert len(reads) < 10


def test_digits_alone_are_milliseconds_although_iso_8601_reads_days_in_some() -> None:
    for digits in ("20260301", "1704010100000", "-5"):
        ((row, _),) = outcome(csv_records({"t": T.TIMESTAMP}), f"t\n{digits}".encode())
        assert row["t"].timestamp() * 1000 == int(digits)


@pytest.mark.parametrize("header", [b'a,"b\n1,2\n', b"\xff\n1\n"])
def test_a_header_that_is_none_loses_the_file_and_says_so(header: bytes) -> None:
    ((_, reason),) = outcome(csv_records(), header)
    assert "its first line does not name its columns" in reason


def tf_outcome(content: bytes, step: int = 1000) -> list[tuple[Any, str]]:
    return outcome(
        TfExamples(list(COLUMNS), COLUMNS, TfrecordKind.Options(path="x")), content, step
    )


def test_examples_are_read_in_pieces_of_any_size() -> None:
    content = tf_rows(rows(0, range(30)))
    whole = tf_outcome(content)
    assert [row["number"] for row, _ in whole] == list(range(30))
    assert tf_outcome(content, 1) == tf_outcome(content, 13) == whole


def test_the_framing_is_that_of_tensorflow() -> None:
    """Held against what tf.io.TFRecordWriter (2.21) wrote of b"abc"."""
    assert framed(b"abc").hex() == "0300000000000000b099490e6162636e57f121"


def test_a_damaged_record_is_one_dead_row_and_a_damaged_length_the_rest() -> None:
    parts = [framed(tf_example({"number": n})) for n in range(5)]
    wrong = bytearray(parts[1])
    wrong[-6] ^= 1
    found = tf_outcome(b"".join([parts[0], bytes(wrong), *parts[2:]]))
    assert [row and row["number"] for row, _ in found] == [0, None, 2, 3, 4]
    assert found[1][1] == "its checksum is not that of its bytes"
    wrong = bytearray(parts[1])
    wrong[0] ^= 1
    found = tf_outcome(b"".join([parts[0], bytes(wrong), *parts[2:]]))
    assert [reason for _, reason in found] == [
        "",
        "it and all after it cannot be read: its length is damaged",
    ]
    found = tf_outcome(b"".join(parts)[:-3])
    assert found[4][1] == "it and all after it cannot be read: the file ends in it"


ODD_FEATURES = {
    "word": (3, "it is a int64_list"),
    "number": (["a"], "it is a bytes_list"),
    "flag": (2, "as bool: 2"),
    "ratio": ([0.5, 1.5], "it has 2 values"),
    "happened": ("soon", "happened"),
    "counts": ([0.5], "it is a float_list"),
}


@pytest.mark.parametrize("name", ODD_FEATURES)
def test_a_feature_that_does_not_fit_makes_its_row_bad_alone(name: str) -> None:
    value, reason = ODD_FEATURES[name]
    good = {"number": 1, "happened": "2026-03-01T12:00:00Z", "word": "x", "flag": 1, "ratio": 2}
    also = good | {"happened": 1772366400000, "ratio": 2**60 + 1, "counts": [1, 2], "words": []}
    odd = good | {name: value}
    found = tf_outcome(b"".join(framed(tf_example(each)) for each in (good, odd, also)))
    assert reason in found[1][1]
    assert found[1] == tf_outcome(framed(tf_example(odd)))[0]
    assert [bool(why) for _, why in found] == [False, True, False]
    assert found[0][0]["happened"] == found[2][0]["happened"]
    assert found[2][0]["counts"] == [1, 2]
    assert (found[2][0]["words"], found[0][0]["words"]) == ([], None)


@pytest.mark.parametrize("kind", ["json", "csv", "tfrecord"])
def test_a_mutated_file_touches_no_other_record(kind: str) -> None:
    mutants(kind, count=60, seed=3)


def test_what_is_stored_is_seen_in_the_first_rows() -> None:
    table = rows(0, range(20))
    for records, content in (
        (JsonLines([], {}, JsonKind.Options(path="x")), json_rows(table)),
        (TfExamples([], {}, TfrecordKind.Options(path="x")), tf_rows(table)),
    ):
        block = next(iter(records.blocks(iter([content]))))
        schema = records.stored_schema(block.values())
        assert all(records.fits(schema.field(name).type, kind) for name, kind in COLUMNS.items())
        assert pa.types.is_timestamp(schema.field("happened").type)
