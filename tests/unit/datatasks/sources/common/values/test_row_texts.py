"""What a dead letter shows of a row."""

from __future__ import annotations

import json

import pyarrow as pa

from forebay.datatasks.sources.common.values.row_texts import row_texts


def test_short_rows_are_shown_as_they_are() -> None:
    rows = pa.record_batch({"i": [1, 2, None], "s": ["ä", None, "x"], "l": [[1], [], None]})
    assert [json.loads(text or "") for text in row_texts(rows, [0, 2])] == [
        {"i": 1, "s": "ä", "l": [1]},
        {"i": None, "s": "x", "l": None},
    ]
    assert (row_texts(rows, []), row_texts(rows.select([]), [1])) == ([], ["{}"])


def test_of_long_values_the_beginning_is_shown() -> None:
    rows = pa.record_batch({"s": ["t" * 10**6], "l": [list(range(10**5))]})
    (text,) = row_texts(rows, [0])
    assert json.loads(text or "") == {"s": "t" * 500 + "…", "l": [*range(50), "…"]}
    many = pa.record_batch({f"c{n}": ["t" * 100] for n in range(100)})
    (text,) = row_texts(many, [0])
    assert len(json.loads(text or "")) == 4001


def test_values_that_are_no_text_are_shown_as_far_as_they_are() -> None:
    bad = pa.array([b"a\xff"]).cast(pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 1, bad.buffers())
    far = pa.array([2**62]).cast(pa.timestamp("us"))
    (text,) = row_texts(pa.record_batch({"s": broken, "t": far, "i": [1]}), [0])
    found = json.loads(text or "")
    assert (found["s"], found["i"]) == ("a\ufffd", 1)
    assert found["t"].startswith("(not shown: ")
