"""Compressed record batches, as each codec's writers frame them."""

from __future__ import annotations

import gzip
import struct
import tracemalloc

import pyarrow as pa
import pytest

from forebay.datatasks.sources.kafka.wire.codecs import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    CodecError,
    decompress,
)

BODY = bytes(range(256)) * 700
MOST = 1 << 20


def streamed(codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(BODY)
    return bytes(sink.getvalue().to_pybytes())


def snappy(block: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(block, asbytes=True))


def xerial() -> bytes:
    """Java's framing: a header of 16 bytes, then blocks with their length."""
    blocks = [snappy(BODY[first : first + 32768]) for first in range(0, len(BODY), 32768)]
    header = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return header + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


@pytest.mark.parametrize(
    ("codec", "compressed"),
    [
        *((NONE, BODY), (GZIP, gzip.compress(BODY)), (SNAPPY, snappy(BODY)), (SNAPPY, xerial())),
        *((LZ4, streamed("lz4")), (ZSTD, streamed("zstd"))),
    ],
    ids=["none", "gzip", "snappy", "snappy-java", "lz4", "zstd"],
)
def test_every_codec(codec: int, compressed: bytes) -> None:
    assert decompress(codec, compressed, len(BODY)) == BODY


def test_a_codec_that_is_not_there_yet() -> None:
    with pytest.raises(CodecError, match="has the unknown compression codec 9"):
        decompress(9, streamed("zstd"), MOST)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 255, 16_383, 16_385, len(BODY) - 1])
def test_bare_snappy_blocks_of_any_size(size: int) -> None:
    assert decompress(SNAPPY, snappy(BODY[:size]), MOST) == BODY[:size]


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
