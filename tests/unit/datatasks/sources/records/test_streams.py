"""Compressed files are read as far as they can be, in bounded pieces, and say where they end."""

from __future__ import annotations

import gzip
import random

import pyarrow as pa
import pytest
from support.record_files import compressed

from forebay.datatasks.sources.records.streams import (
    PIECE_BYTES,
    DamageError,
    compression_of,
    pieces,
)

CONTENT = b"".join(b"%d,%d\n" % (n, n * n) for n in range(200_000))
ENDINGS = ["", ".gz", ".zst", ".snappy", ".sz"]


def read(stored: bytes, ending: str) -> tuple[bytes, str]:
    found: list[bytes] = []
    try:
        for piece in pieces(pa.BufferReader(stored), compression_of(f"a.json{ending}")):
            assert len(piece) <= PIECE_BYTES
            found.append(piece)
    except DamageError as error:
        return b"".join(found), str(error)
    return b"".join(found), ""


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_was_compressed_is_read(ending: str) -> None:
    assert read(compressed(CONTENT, ending), ending) == (CONTENT, "")
    assert read(compressed(b"", ending), ending) == (b"", "")


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_a_stream_that_ends_early_gives_what_is_there_and_says_so(ending: str) -> None:
    stored = compressed(CONTENT, ending)
    for share in (0.3, 0.9):
        found, reason = read(stored[: int(len(stored) * share)], ending)
        assert CONTENT.startswith(found)
        assert len(found) > len(CONTENT) * share / 3
        assert reason


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_nothing_but_our_error_comes_of_any_bytes(ending: str) -> None:
    chance = random.Random(7)
    stored = compressed(CONTENT[:20_000], ending)
    for _ in range(150):
        changed = bytearray(stored)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        read(bytes(changed[: chance.randint(1, len(changed))]), ending)


def test_gzip_members_follow_each_other_with_zeros_at_the_end() -> None:
    stored = gzip.compress(b"a\n") + gzip.compress(b"b\n") + b"\0" * 512
    assert read(stored, ".gz") == (b"a\nb\n", "")
    found, reason = read(stored + b"no gzip stream", ".gz")
    assert found == b"a\nb\n"
    assert "incorrect header check" in reason


def test_small_pieces_are_joined() -> None:
    stored = gzip.compress(b"a line\n") * 1000
    assert list(pieces(pa.BufferReader(stored), "gzip")) == [b"a line\n" * 1000]


def test_a_checksum_that_is_wrong_is_damage() -> None:
    stored = bytearray(gzip.compress(b"a\n" * 50))
    stored[-6] ^= 1
    assert "incorrect data check" in read(bytes(stored), ".gz")[1]
