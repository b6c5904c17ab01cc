"""What a library alone takes to make Arrow columns of files, one thread, nothing else done.

The same columns as the data path makes: of CSV also times and lists, which pyarrow reads as texts;
of tf.Example one column after the other, as a careful user of protobuf would.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.json as pj
import pyarrow.parquet as pq

from forebay.datatasks.sources.records.tf_examples import EXAMPLE

_TIME, _LIST = pa.timestamp("us", "UTC"), pa.list_(pa.int64())
_FEATURES = attrgetter("features.feature")
_HEAD = struct.Struct("<QI")


def _type(name: str) -> pa.DataType:
    known = {"at": _TIME, "history": _LIST}
    return known.get(name) or (pa.float64() if name.startswith("f") else pa.int64())


def parquet(files: list[Path], batch_rows: int) -> int:
    rows = 0
    for path in files:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_rows, use_threads=False):
                rows += batch.num_rows
    return rows


def json(files: list[Path], _batch_rows: int) -> int:
    names = pj.open_json(files[0], pj.ReadOptions(use_threads=False)).schema.names
    schema = pa.schema([(name, _type(name)) for name in names])
    options = pj.ParseOptions(explicit_schema=schema)
    reads = (pj.open_json(path, pj.ReadOptions(use_threads=False), options) for path in files)
    return sum(batch.num_rows for read in reads for batch in read)


def csv(files: list[Path], _batch_rows: int) -> int:
    rows = 0
    for path in files:
        names = path.open().readline().strip().split(",")
        types = {name: _type(name) for name in names}
        texts = {name: pa.string() for name in ("at", "history") if name in names}
        options = pv.ConvertOptions(column_types={**types, **texts})
        read = pv.open_csv(path, pv.ReadOptions(use_threads=False), convert_options=options)
        for batch in read:
            for name in texts:
                column = batch.column(name)
                made = pc.split_pattern(column, "|") if name == "history" else column
                made.cast(types[name])
            rows += batch.num_rows
    return rows


def tfrecord(files: list[Path], batch_rows: int) -> int:
    rows = 0
    for path in files:
        content, at, values = path.read_bytes(), 0, []
        while at < len(content):
            length, _ = _HEAD.unpack_from(content, at)
            values.append(content[at + _HEAD.size : at + _HEAD.size + length])
            at += _HEAD.size + length + 4
        for first in range(0, len(values), batch_rows):
            examples = [EXAMPLE.FromString(each) for each in values[first : first + batch_rows]]
            maps = list(map(_FEATURES, examples))
            for name in list(maps[0]):
                target = _type(name)
                if target == _LIST:
                    pa.array([list(each[name].int64_list.value) for each in maps], target)
                elif target == _TIME:
                    texts = [each[name].bytes_list.value[0].decode() for each in maps]
                    pa.array(texts, pa.string()).cast(target)
                elif pa.types.is_floating(target):
                    pa.array([each[name].float_list.value[0] for each in maps], target)
                else:
                    pa.array([each[name].int64_list.value[0] for each in maps], target)
            rows += len(examples)
    return rows


DECODERS: dict[str, Callable[[list[Path], int], int]] = {
    "parquet": parquet,
    "json": json,
    "csv": csv,
    "tfrecord": tfrecord,
}
