"""Arrow metadata whose parts all point to one place, which is checked for each of them."""

from __future__ import annotations

import struct

import pyarrow as pa

from forebay.datatasks.sources.formats.ipc_metadata import Table
from support.hostile.arrow_streams import stream

_TEXT = "x" * 500_000
_MANY = 1000
_FRAME_BYTES = 128
_END = struct.pack("<II", 0xFFFFFFFF, 0)
_BLOCK = struct.Struct("<qiiq")


def shared_texts() -> bytes:
    """Metadata of a schema: a thousand pairs that are all the longest of them. 500 MB for Arrow."""
    pairs = {str(number): "" for number in range(_MANY)} | {"long": _TEXT}
    return _with_shared([pa.field("i", pa.int64())], pairs, 2)


def shared_names() -> bytes:
    """A thousand columns whose name is one text. A gigabyte for Arrow."""
    names = ["i", *map(str, range(_MANY)), _TEXT]
    return _with_shared([pa.field(name, pa.int64()) for name in names], {}, 1, kept=1)


def shared_zones() -> bytes:
    """The same with time zones."""
    zones = ["UTC"] * _MANY + [_TEXT]
    fields = [pa.field(f"t{number}", pa.timestamp("us", zone)) for number, zone in enumerate(zones)]
    return _with_shared([pa.field("i", pa.int64()), *fields], {}, 1, kept=1)


def shared_columns() -> bytes:
    """A struct of a thousand structs of a thousand columns, which are all the same one."""
    leaves = [pa.field(str(number), pa.int64()) for number in range(_MANY)]
    inner = [*leaves[1:], pa.field("inner", pa.struct(leaves))]
    outer = pa.field("outer", pa.struct(inner))
    content = bytearray(_empty([pa.field("i", pa.int64()), outer], {}))
    fields = _entries(content, *_schema_at(content), 1)
    _share(content, _entries(content, content, fields[1] + _u32(content, fields[1]), 5))
    return bytes(content)


def shared_numbers(frames: int, numbers: int) -> bytes:
    """A message of many batches, whose lists of lengths are one list behind its end."""
    schema = _empty([pa.field("i", pa.int64())], {})[: -len(_END)]
    far = frames * _FRAME_BYTES + len(_END)
    parts = [_frame(far - number * _FRAME_BYTES) for number in range(frames)]
    return b"".join([schema, *parts, _END, struct.pack("<I", numbers), bytes(16 * numbers)])


def shared_batch(batches: int, numbers: int) -> bytes:
    """A file whose batches are all the same one, with many lengths."""
    schema = pa.schema([("n", pa.int64())])
    sink = pa.BufferOutputStream()
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    with pa.ipc.new_file(sink, schema) as writer:
        for _ in range(batches):
            writer.write_batch(empty)
    content = sink.getvalue().to_pybytes()
    length = struct.unpack_from("<i", content, len(content) - 10)[0]
    head, end = content[: -10 - length], bytearray(content[-10 - length :])
    head += bytes(-len(head) % 8)
    list_bytes = struct.pack("<I", numbers) + bytes(16 * numbers)
    batch = bytearray(_frame(_FRAME_BYTES - 8) + list_bytes + bytes(-len(list_bytes) % 8))
    struct.pack_into("<I", batch, 4, len(batch) - 8)
    root = Table(bytes(end), _u32(end, 0))
    at = root.field(3)
    at += _u32(end, at)
    for number in range(batches):
        place = at + 4 + _BLOCK.size * number
        _BLOCK.pack_into(end, place, len(head), len(batch), 0, 0)
    return head + batch + bytes(end)


def _empty(fields: list[pa.Field], pairs: dict[str, str]) -> bytes:
    return stream([], pa.schema(fields, metadata=pairs or None))


def _with_shared(
    fields: list[pa.Field], pairs: dict[str, str], number: int, kept: int = 0
) -> bytes:
    content = bytearray(_empty(fields, pairs))
    places = _entries(content, *_schema_at(content), number)
    _share(content, places[kept:])
    return bytes(content)


def _schema_at(content: bytearray) -> tuple[bytearray, int]:
    at = 8 + _u32(content, 8)
    header = Table(bytes(content), at).field(2)
    return content, header + _u32(content, header)


def _entries(content: bytearray, data: bytearray, table: int, number: int) -> list[int]:
    at = Table(bytes(data), table).field(number)
    at += _u32(content, at)
    return [at + 4 + 4 * index for index in range(_u32(content, at))]


def _share(content: bytearray, places: list[int]) -> None:
    """Let all of them point to what takes most: it is the longest one's."""
    targets = sorted(place + _u32(content, place) for place in places)
    ends = [*targets[1:], len(content)]
    target = max(zip(targets, ends, strict=True), key=lambda pair: pair[1] - pair[0])[0]
    for place in places:
        struct.pack_into("<I", content, place, target - place)


def _u32(content: bytes | bytearray, at: int) -> int:
    return int(struct.unpack_from("<I", content, at)[0])


def _frame(far: int) -> bytes:
    """A record batch of one row whose two lists are so far from its beginning."""
    content = bytearray(_FRAME_BYTES - 8)
    struct.pack_into("<I", content, 0, 24)
    struct.pack_into("<HHHHHH", content, 8, 12, 24, 4, 6, 8, 16)
    struct.pack_into("<ihBxIxxxxq", content, 24, 16, 4, 3, 68 - 32, 0)
    struct.pack_into("<HHHHH", content, 56, 10, 24, 8, 16, 20)
    struct.pack_into("<ixxxxqII", content, 68, 12, 1, far - 84, far - 88)
    return struct.pack("<II", 0xFFFFFFFF, len(content)) + bytes(content)
