"""Records that are lines, and types that people write as texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from forebay.datatasks.sources.common.values.times import usual_instants
from forebay.datatasks.sources.records.blocks import (
    RECORD_BYTES_MAX,
    Block,
    Records,
    bad_record,
    lost_rest,
    too_long,
)
from forebay.datatasks.sources.records.streams import DamageError

BOM = b"\xef\xbb\xbf"


class Lines(Records):
    """An empty line is no record. A line ends with a line feed, perhaps after a carriage return."""

    place = "line"

    def blocks(self, pieces: Iterator[bytes]) -> Iterator[Block]:
        """See `Records.blocks`. In memory are a piece and a line that is not too long."""
        first = lines = 0
        try:
            for found in _whole_lines(pieces):
                if isinstance(found, int):
                    block, lines = bad_record(first, lines + 1, too_long(found)), lines + 1
                else:
                    block, lines = _cut(found, first, lines)
                first = block.end
                if len(block):
                    yield block
        except DamageError as error:
            yield lost_rest(first, lines + 1, error)


def is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes | int]:
    """Whole lines, some at a time; of one that is too long, how many bytes it has."""
    rest, dropped = b"", 0
    for piece in pieces:
        kept = piece
        if dropped:
            end = piece.find(b"\n") + 1
            dropped += end or len(piece)
            if not end:
                continue
            yield dropped
            kept, dropped = piece[end:], 0
        end = kept.rfind(b"\n") + 1
        if end:
            yield rest + kept[:end]
            rest = b""
        rest += kept[end:]
        if len(rest) > RECORD_BYTES_MAX:
            rest, dropped = b"", len(rest)
    if dropped:
        yield dropped
    elif rest:
        yield rest


def _cut(data: bytes, first: int, lines: int) -> tuple[Block, int]:
    """The lines of some bytes, after so many records and lines; and the new count of lines."""
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.append(0, ends[:-1] + 1)
    if not lines and data.startswith(BOM):
        starts[0] = len(BOM)
    if b"\r" in data:
        ends = ends - ((codes[ends - 1] == ord("\r")) & (ends > starts))
    after = lines + len(ends)
    places = np.arange(lines + 1, after + 1)
    if (ends <= starts).any():
        kept = ends > starts
        starts, ends, places = starts[kept], ends[kept], places[kept]
    long = np.flatnonzero(ends - starts > RECORD_BYTES_MAX).tolist()
    bad = {index: too_long(int(ends[index] - starts[index])) for index in long}
    return Block(data, starts, ends, first, places, bad), after


def seen_type(column: pa.Array) -> pa.DataType:
    """The type of values; a time, where all of them are texts of times."""
    if not pat.is_string(column.type) or column.null_count == len(column):
        return column.type
    times = usual_instants(column)
    return column.type if times is None else times.type
