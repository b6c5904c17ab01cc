"""Parquet files for tests of sources: written, made unreadable, damaged."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.testing.source_data import NUMBER, Batch, batch


def write_table(path: Path, table: pa.Table, row_group_size: int = 9) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=row_group_size)


def bad_batches() -> list[Batch]:
    """Rows of hour 0 with NUMBER as unsigned integers, two of which do not fit a signed one."""
    good = batch(0, range(30))
    values = [2**63 + n if n in {11, 12} else n for n in good.table[NUMBER].to_pylist()]
    index = good.table.schema.get_field_index(NUMBER)
    table = good.table.set_column(index, NUMBER, pa.array(values, pa.uint64()))
    return [Batch(good.published, table)]


def damage_file(path: Path) -> None:
    """Overwrite the first bytes of data; the footer stays whole."""
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    rot(path, content)


def rot(path: Path, content: bytes) -> None:
    """Other bytes, as a bad disk gives them: nobody wrote the file, so size and time are as before.

    A file that somebody writes is no damaged one: it is another than the planned one.
    """
    before = path.stat()
    assert len(content) == before.st_size
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def null_labels(path: Path, every: int, label: str = "clicked") -> int:
    """One row of so many loses its label; how many did."""
    table = pq.read_table(path)
    labels = table.column(label).to_pylist()
    labels[::every] = [None] * len(labels[::every])
    index = table.schema.get_field_index(label)
    pq.write_table(table.set_column(index, label, pa.array(labels, pa.int64())), path)
    return len(labels[::every])


def contradict_types(path: Path, column: str) -> None:
    """Say another type of a column's chunk than its schema does: Arrow 26 aborts when it is asked.

    A column's metadata are its type (an INT64), encodings and path, as Thrift writes them in short.
    """
    content = path.read_bytes()
    end = len(content) - 8
    start = end - int.from_bytes(content[-8:-4], "little")
    name = column.encode()
    pattern = rb"(\x1c\x15)\x04(\x19[\x15-\xf5].{1,8}?\x19\x18" + bytes([len(name)]) + name + b")"
    footer, count = re.subn(
        pattern, rb"\g<1>" + b"\x06" + rb"\g<2>", content[start:end], flags=re.DOTALL
    )
    assert count, f"{path} has no chunk of {column!r} as it was looked for"
    path.write_bytes(content[:start] + footer + content[end:])
