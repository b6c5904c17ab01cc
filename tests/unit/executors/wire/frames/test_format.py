"""Bytes of frames: anything else is refused by name, before its lengths are trusted."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from support.served_rows import SCHEMA, batch_of_lists

from forebay.executors.wire.frames import format as frames
from forebay.executors.wire.frames.format import FrameFormatError, Header
from forebay.executors.wire.frames.rows import pack_batches, read_batch, schema_fingerprint

LIMIT = 10_000


def header(**changes: int) -> bytes:
    """A sound header of two sections of 64 bytes, with these fields changed."""
    fields = {"version": 1, "kind": frames.ROWS, "sections": 2, "head": 20, "payload": 192}
    fields |= {"rows": 3} | changes
    return struct.pack("<8sHHIQQQ24x", b"\x8eFBFRAME", *fields.values())


def test_a_sound_header_is_read() -> None:
    assert frames.read_header(header(), LIMIT) == Header(frames.ROWS, 2, 20, 192, 3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "received a frame of version 2, but expected 1"),
        ({"kind": 9}, "received a record of unknown kind 9"),
        ({"payload": 10_001}, "received a record of 10001 bytes: 10000 at most"),
        ({"payload": 2**63}, "received a record of 9223372036854775808 bytes"),
        ({"kind": frames.END, "payload": 5000}, "received a record of 5000 bytes: 4096 at most"),
        ({"sections": 2**32 - 1}, "4294967295 sections and a head of 20 bytes"),
        ({"head": 2**64 - 1}, "a head of 18446744073709551615 bytes do not fit"),
        ({"head": 177}, "2 sections and a head of 177 bytes do not fit into a record of 192 bytes"),
    ],
)
def test_other_headers_are_refused_by_name(changes: dict[str, int], words: str) -> None:
    with pytest.raises(FrameFormatError, match=words):
        frames.read_header(header(**changes), LIMIT)


def test_an_answer_of_http_is_no_frame() -> None:
    with pytest.raises(FrameFormatError, match="begin with b'HTTP/1"):
        frames.read_header(b"HTTP/1.1 400 Bad Request".ljust(64), LIMIT)


@pytest.mark.parametrize("lengths", [(64, 65), (64, 0), (2**63, 64), (2**64 - 1, 2**64 - 1)])
def test_sections_fill_their_record(lengths: tuple[int, int]) -> None:
    payload = struct.pack("<QQ", *lengths).ljust(192, b"\0")
    found = frames.read_header(header(), LIMIT)
    with pytest.raises(FrameFormatError, match="sections end at byte"):
        frames.sections_of(found, memoryview(payload))


def test_a_frame_that_is_too_large_says_the_way_out() -> None:
    with pytest.raises(
        FrameFormatError, match=r"9 rows has 10112 bytes.*lower train\.minibatch_rows"
    ):
        frames.pack_rows(b"{}", 9, [LIMIT], LIMIT)


def test_words_have_a_bound() -> None:
    record = frames.pack_text(frames.REFUSED, "word " * 10_000)
    assert len(record) == 64 + 4096
    assert frames.read_header(record[:64], LIMIT).kind == frames.REFUSED


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        (b"G", "not a caller"),
        (b"PRI * HTTP/2.0\r\n\r\n", "not a caller"),
        (b"\x8eFBFRAMe", "not a caller"),
        (b"\x8eFBFRAME\2\0", "the caller wants frames of version 2, but these are of 1"),
    ],
)
def test_what_begins_no_hello_is_named_at_once(begun: bytes, words: str) -> None:
    assert words in frames.hello_problem(begun)


def test_a_hello_may_come_byte_by_byte() -> None:
    sound = frames.pack_hello("token", frames.Hello(1, bytes(32)))
    assert {frames.hello_problem(sound[:end]) for end in range(len(sound) + 1)} == {""}


# Rows ------------------------------------------------------------------------------------------

SOUND = [pa.py_buffer(b"".join(map(bytes, each))) for each in pack_batches([batch_of_lists(4)])]


def test_sections_are_the_memory_of_the_columns() -> None:
    batch = batch_of_lists(100)
    rows = pack_batches([batch.slice(10, 50)])[0][0]
    assert rows.address == batch.column(0).buffers()[1].address + 10 * 8
    assert rows.size == 50 * 8


@pytest.mark.parametrize(
    ("place", "section", "words"),
    [
        (0, b"1234567", "column 'row_id' has 7 bytes instead of 32"),
        (2, bytes(47), "column 'dense' has 47 bytes instead of 48"),
        (4, bytes(16), "column 'feature.tags' has 16 bytes instead of 20"),
        (4, struct.pack("<5i", 1, 1, 1, 1, 1), "the offsets of column 'feature.tags'"),
        (4, struct.pack("<5i", 0, 2, 1, 3, 4), "the offsets of column 'feature.tags'"),
        (4, struct.pack("<5i", 0, 0, 0, 0, -4), "the offsets of column 'feature.tags'"),
        (4, struct.pack("<5i", 0, 1, 2, 3, 2**31 - 1), "instead of 17179869176"),
    ],
)
def test_sections_that_do_not_fit_are_refused_by_column(
    place: int, section: bytes, words: str
) -> None:
    sections = [*SOUND[:place], pa.py_buffer(section), *SOUND[place + 1 :]]
    with pytest.raises(FrameFormatError, match=words):
        read_batch(SCHEMA, 4, sections)


def test_sections_are_as_many_as_the_columns_need() -> None:
    with pytest.raises(FrameFormatError, match=r"column 'feature\.words' is missing"):
        read_batch(SCHEMA, 4, SOUND[:-2])
    with pytest.raises(FrameFormatError, match="1 sections belong to no column"):
        read_batch(SCHEMA, 4, [*SOUND, SOUND[0]])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1, None]), "served column 'x' holds a null"),
        (pa.array(["a", "b"]), "values of type string cannot be sent"),
        (pa.array([1, 2], pa.int32()), "values of type int32 cannot be sent"),
    ],
)
def test_what_no_section_can_hold_is_refused(column: pa.Array, words: str) -> None:
    with pytest.raises(FrameFormatError, match=words):
        pack_batches([pa.record_batch([column], names=["x"])])


def test_other_columns_have_another_fingerprint() -> None:
    others = [
        SCHEMA.remove(0),
        SCHEMA.set(0, pa.field("other", pa.int64())),
        SCHEMA.set(0, pa.field("row_id", pa.float32())),
        SCHEMA.set(2, pa.field("dense", pa.list_(pa.float32(), 4))),
    ]
    found = {schema_fingerprint(each) for each in [SCHEMA, *others]}
    assert len(found) == 5
    assert {len(each) for each in found} == {32}
