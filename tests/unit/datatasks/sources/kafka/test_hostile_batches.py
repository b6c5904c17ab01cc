"""Record batches of strangers: refused as a whole, with their place, and the rest is read."""

from __future__ import annotations

import struct
import tracemalloc
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest
from support.hostile.record_batches import compressed, record_batch, sealed, stored
from support.there import there

from forebay.config.specs.sources import ColumnType
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.rows.offset_runs import (
    ABORTED,
    CONTROL,
    RECORDS,
    Run,
    offsets_read,
)
from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.kafka.chunks import ChunkMaker
from forebay.datatasks.sources.kafka.read import Stretch
from forebay.datatasks.sources.kafka.wire import records
from forebay.datatasks.sources.kafka.wire.codecs import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    CodecError,
    TooLargeError,
    decompress,
)
from forebay.datatasks.sources.kafka.wire.messages import messages_within
from forebay.datatasks.sources.kafka.wire.records import MessageBatch
from forebay.datatasks.tasks import Chunk, DataTask, Position
from forebay.errors import DataError

START = datetime(2026, 3, 1, tzinfo=UTC)
MOST = 1 << 20
COLUMNS = {"i": ColumnType.INT}


def read(content: bytes, most: int = MOST) -> list[MessageBatch]:
    from kafka import TopicPartition

    hook = records._hook_class()(0, TopicPartition("clicks", 0), stored(content))
    return [batch.read(most) for batch in hook.take()]


def chunks(found: list[MessageBatch], policy: Any = "dead_letter") -> list[Chunk]:
    whole = {"path": "clicks/3", "first": 100, "end": 200, "rows": None}
    whole |= {"size_bytes": 1, "version": ""}
    row = {"hour": 0, "partition": "3", "ranges": [whole], "rows": None, "cut": False}
    day = Interval(START, START + timedelta(days=1))
    task = DataTask.of_row(row, "clicks/0", "clicks", "2026-03-01", day)
    decoder, stretch = decoder_named("json", ["i"], COLUMNS), Stretch("clicks", 3, 100, 200)
    maker = ChunkMaker(decoder, stretch, task, Position(100, 0), policy, 4)
    position, parts = 100, []
    for batch in found:
        parts.append(there(messages_within(batch, position, 200)))
        position = parts[-1].end
    return list(maker.chunks(parts))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=["gzip", "snappy", "lz4", "zstd"])
def test_nothing_is_decompressed_further_than_allowed(codec: int) -> None:
    body = compressed(codec, bytes(64 << 20))
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(TooLargeError, match=r"bytes, and message_bytes_max is 1,048,576"):
            decompress(codec, body, MOST)
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 4 << 20
    assert len(decompress(codec, compressed(codec, bytes(MOST)), MOST)) == MOST
    with pytest.raises(TooLargeError):
        decompress(codec, compressed(codec, bytes(MOST + 1)), MOST)


@pytest.mark.guarantee(
    "a small Kafka record batch decompresses to a huge size, or its producer wrote it wrongly",
    "refused before any value is used: red with its place, or dead letters by policy, before "
    "the memory is taken; undeclared columns are not decoded: one dead letter for its records, "
    "and each of their offsets is counted",
)
def test_a_bomb_between_others_is_one_dead_letter() -> None:
    found = [
        *read(record_batch(100, [b'{"i": 1}', b'{"i": 2}'])),
        *read(record_batch(102, [bytes(MOST), b"x", b"y"], ZSTD)),
        *read(record_batch(105, [b'{"i": 3}'])),
    ]
    (chunk,) = chunks(found)
    assert (chunk.batch.to_pydict(), chunk.parts.tolist()) == ({"i": [1, 2, 3]}, [100, 101, 105])
    (dead,) = chunk.dead
    assert dead.location == {"topic": "clicks", "partition": 3, "offset": 102, "offsets": 3}
    assert (dead.rows, dead.position) == (3, Position(102, 0))
    assert dead.reason.startswith("its record batch takes at least 1,")
    assert dead.reason.endswith("bytes, and message_bytes_max is 1,048,576")
    assert (chunk.end, offsets_read(chunk.runs, 106).records) == (Position(106, 0), 6)
    told = r"topic clicks, partition 3, offset 102.*record batch takes"
    with pytest.raises(DataError, match=told):
        chunks(found, "fail")


def test_only_the_offsets_that_are_read_are_dead() -> None:
    (bomb,) = read(record_batch(98, [bytes(MOST)] * 5, ZSTD))
    (chunk,) = chunks([bomb])
    assert [(row.rows, row.position.part) for row in chunk.dead] == [(3, 100)]
    assert chunk.runs.tolist() == [[*Run(100, 103, RECORDS)]]


def test_batches_of_too_many_records_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_MESSAGES_MAX", 2)
    few, many = (read(record_batch(0, [b"x"] * count))[0] for count in (2, 3))
    assert (len(few.values), few.refusal) == (2, "")
    assert many.refusal == "its record batch has 3 records, and at most 2 are read"
    assert (many.first, many.offset, many.values) == (0, 2, [])


def test_what_a_producer_compressed_badly_is_refused() -> None:
    content = record_batch(0, [b"x"], body=b"no zstd at all", codec=ZSTD)
    assert read(content)[0].refusal.startswith("its record batch does not decompress: ")
    content = record_batch(0, [b"x"], body=b"\x7f")
    assert read(content)[0].refusal.startswith("its record batch cannot be parsed: ")
    content = record_batch(0, [b"x"], body=record_batch(0, [b"x"])[61:] + b"x")
    assert "bytes after its last record" in read(content)[0].refusal


def test_offsets_that_do_not_rise_are_refused() -> None:
    content = bytearray(record_batch(0, [b"x", b"y"]))
    second = len(content) - len(content[61:]) // 2
    assert content[second + 3] == 2, "the offset of the second record, as a varint"
    content[second + 3] = 0
    (found,) = read(record_batch(0, [b"x"] * 2, body=content[61:]))
    assert "offsets that do not rise" in found.refusal


def test_times_are_added_as_java_adds_them() -> None:
    latest = 2**63 - 1
    (found,) = read(record_batch(0, [b"x", b"y"], first_timestamp=latest))
    assert found.timestamps == [latest, -(2**63)]
    assert np.array(found.timestamps, np.int64).tolist() == found.timestamps


def of_old(last: int, values: list[bytes], magic: int, codec: int) -> bytes:
    """Messages as Kafka before 0.11 stored them. last: the offset of the last one."""
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    for number, value in enumerate(values):
        builder.append(last - len(values) + 1 + number, 1_772_323_200_000, b"key", value)
    content = bytearray(builder.build())
    if codec:
        struct.pack_into(">q", content, 0, last)
    return bytes(content)


@pytest.mark.guarantee(
    "a Kafka message has a record format older than 0.11",
    "red with topic, partition and offset, or a dead letter by policy: the client would "
    "decompress it without a limit",
)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP], ids=["plain", "gzip"])
def test_formats_that_nobody_bounds_are_refused_with_their_place(magic: int, codec: int) -> None:
    values = [b'{"i": 2}', b'{"i": 2}'] if codec == 0 else [bytes(100 << 20), b"x"]
    old = of_old(102, values, magic, codec)
    before = psutil.Process().memory_info().rss
    parts = (record_batch(100, [b'{"i": 1}']), old, record_batch(103, [b'{"i": 3}']))
    found = [batch for part in parts for batch in read(part)]
    assert psutil.Process().memory_info().rss < before + (50 << 20)
    (chunk,) = chunks(found)
    assert (chunk.batch.to_pydict(), sum(dead.rows for dead in chunk.dead)) == ({"i": [1, 3]}, 2)
    assert {dead.location["offset"] for dead in chunk.dead} <= {101, 102}
    assert all(f"format {magic}, from before Kafka 0.11" in dead.reason for dead in chunk.dead)
    with pytest.raises(DataError, match=r"topic clicks, partition 3, offset 101.*Kafka 0\.11"):
        chunks(found, "fail")


_PRODUCER = 7
_TRANSACTION, _MARKER = 0x10, 0x30
_ABORT = bytes(4)  # the key of a marker: version and kind


def of_producer(first: int, attributes: int, key: bytes | None = None) -> bytes:
    """A batch in a transaction. Without a key it has no record, as compaction leaves some."""
    body = b""
    if key is not None:
        fields = b"\0\0\0" + bytes([2 * len(key)]) + key + b"\1\0"
        body = bytes([2 * len(fields)]) + fields
    content = bytearray(record_batch(first, [b"x"], body=body))
    struct.pack_into(">h", content, 21, attributes)
    struct.pack_into(">qhii", content, 43, _PRODUCER, 0, 0, 0 if key is None else 1)
    return sealed(bytes(content))


def committed(content: bytes, *aborted: int) -> list[tuple[int, int, int]]:
    """First and last offset and kind of batches. aborted: where transactions begin that were."""
    from kafka import TopicPartition
    from kafka.protocol.consumer import IsolationLevel

    undone = [SimpleNamespace(first_offset=each, producer_id=_PRODUCER) for each in aborted]
    more = {"isolation_level": IsolationLevel.READ_COMMITTED, "aborted_transactions": undone}
    hook = records._hook_class()(0, TopicPartition("clicks", 3), stored(content), **more)
    read = [batch.read(MOST) for batch in hook.take()]
    if hook:
        hook.take()  # what came after them failed
    return [(each.first, each.offset, each.kind) for each in read]


def test_a_marker_without_its_record_is_passed_over() -> None:
    """Compaction keeps such a batch: it has the last sequence number of its producer."""
    empty = of_producer(1, _MARKER)
    assert committed(empty + record_batch(2, [b"y"])) == [(1, 1, CONTROL), (2, 2, RECORDS)]
    data, abort = of_producer(0, _TRANSACTION, b"k"), of_producer(1, _MARKER, _ABORT)
    later = of_producer(2, _TRANSACTION, b"k")
    found = committed(data + abort + later, 0)
    assert found == [(0, 0, ABORTED), (1, 1, CONTROL), (2, 2, RECORDS)]


@pytest.mark.parametrize("key", [b"", b"\0", 5 * b"\0", 6 * b"\xff"])
def test_a_marker_that_is_none_is_named(key: bytes) -> None:
    from kafka.errors import CorruptRecordError

    told = r"control batch of .*clicks.*partition=3\) at offset 5 cannot be"
    with pytest.raises(CorruptRecordError, match=told):
        committed(of_producer(5, _MARKER, key) + record_batch(6, [b"y"]))


@pytest.mark.parametrize("length", [-(2**31), -20, -13, -12, 0, 14, 20])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_lengths_that_are_damaged_are_named(length: int, magic: int) -> None:
    from kafka.errors import CorruptRecordError

    damaged = bytearray(record_batch(4, [b"x"]) + record_batch(5, [b"y"]))
    struct.pack_into(">i", damaged, 8, length)
    damaged[16] = magic
    with pytest.raises(CorruptRecordError, match=r"clicks.*partition=0\) at offset"):
        read(bytes(damaged))


BODY = bytes(range(256)) * 700


def xerial(blocks: list[bytes]) -> bytes:
    """Java's framing: a header of 16 bytes, then blocks with their length."""
    header = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return header + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_every_codec(codec: int) -> None:
    assert decompress(codec, compressed(codec, BODY), len(BODY)) == BODY


def test_blocks_of_snappy() -> None:
    parts = [BODY[first : first + 32768] for first in range(0, len(BODY), 32768)]
    blocks = xerial([compressed(SNAPPY, part) for part in parts])
    assert decompress(SNAPPY, blocks, len(BODY)) == BODY
    with pytest.raises(TooLargeError, match="takes 1,572,864 bytes"):
        decompress(SNAPPY, xerial([compressed(SNAPPY, bytes(MOST // 2))] * 3), MOST)


def test_a_codec_that_is_not_there_yet() -> None:
    with pytest.raises(CodecError, match="has the unknown compression codec 9"):
        decompress(9, BODY, MOST)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 255, 16_383, 16_385, len(BODY) - 1])
def test_bare_snappy_blocks_of_any_size(size: int) -> None:
    assert decompress(SNAPPY, compressed(SNAPPY, BODY[:size]), MOST) == BODY[:size]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_what_does_not_decompress_leaves_nothing_in_memory(codec: int) -> None:
    """A topic full of such batches took all memory of whoever read it."""

    def fail(times: int) -> int:
        for _ in range(times):
            with pytest.raises(CodecError):
                decompress(codec, b"garbage, and no body of any codec", MOST)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = fail(20)
        assert fail(200) - before < 1 << 20
    finally:
        tracemalloc.stop()
