"""tf.data's service, with a worker in a process of its own: `python tf_service.py KIND`.

KIND is `examples`, a tf.Example for each row, or `batches`, a minibatch as serialised tensors for
each record. Ids are hashed by TensorFlow's own Fingerprint64 of their text. The folder holds what
`written` makes of the same Parquet files, outside of what is measured.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf  # noqa: TID253 - a peer is TensorFlow
from columns import BUCKETS, FLOATS, IDS, LIST
from served import MINIBATCH_ROWS, answer

EXAMPLE_ROWS_MAX = 60_000  # of each folder: they are written row by row
_PARTS = ("label", "floats", "ids", "history", "lengths")
_TYPES = (tf.int8, tf.float32, tf.int64, tf.int64, tf.int32)
_SERVER = """
import sys, tensorflow as tf
dispatcher = tf.data.experimental.service.DispatchServer()
address = dispatcher.target.split("://")[1]
worker = tf.data.experimental.service.WorkerServer(
    tf.data.experimental.service.WorkerConfig(dispatcher_address=address))
print(dispatcher.target, flush=True)
sys.stdin.read()
"""


def written(paths: list[Path], kind: str) -> list[str]:
    """TFRecord files of the rows of Parquet files, beside them; made once."""
    found = []
    for path in paths:
        target = path.parent.parent / f"{path.parent.name}-{kind}" / f"{path.stem}.tfrecord"
        found.append(str(target))
        if target.exists():
            continue
        target.parent.mkdir(exist_ok=True)
        with tf.io.TFRecordWriter(str(target)) as writer, pq.ParquetFile(path) as file:
            left = EXAMPLE_ROWS_MAX // len(paths)
            for batch in file.iter_batches(MINIBATCH_ROWS):
                if kind == "batches":
                    writer.write(_packed(batch))
                elif left > 0:
                    for row in batch.slice(0, left).to_pylist():
                        writer.write(_example(row))
                    left -= batch.num_rows
    return found


def _packed(batch: pa.RecordBatch) -> bytes:
    history = batch.column(LIST)
    parts = (
        batch.column("label").to_numpy(),
        np.stack([batch.column(name).to_numpy() for name in FLOATS], axis=1),
        np.stack([batch.column(name).to_numpy() for name in IDS], axis=1),
        history.flatten().to_numpy(),
        history.value_lengths().to_numpy(),
    )
    feature = {
        name: _bytes(tf.io.serialize_tensor(part).numpy())
        for name, part in zip(_PARTS, parts, strict=True)
    }
    return bytes(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def _bytes(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _example(row: dict[str, Any]) -> bytes:
    feature = {
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[row["label"]])),
        **{
            name: tf.train.Feature(float_list=tf.train.FloatList(value=[row[name]]))
            for name in FLOATS
        },
        **{
            name: tf.train.Feature(int64_list=tf.train.Int64List(value=[row[name]])) for name in IDS
        },
        LIST: tf.train.Feature(int64_list=tf.train.Int64List(value=row[LIST])),
    }
    return bytes(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def _hashed(ids: tf.Tensor) -> tf.Tensor:
    return tf.strings.to_hash_bucket_fast(tf.strings.as_string(ids), BUCKETS)


def parsed_examples(records: tf.Tensor) -> dict[str, Any]:
    """A minibatch of serialised rows, parsed and encoded."""
    found = tf.io.parse_example(
        records,
        {
            "label": tf.io.FixedLenFeature([], tf.int64),
            **{name: tf.io.FixedLenFeature([], tf.float32) for name in FLOATS},
            **{name: tf.io.FixedLenFeature([], tf.int64) for name in IDS},
            LIST: tf.io.RaggedFeature(tf.int64),
        },
    )
    return {
        "label": tf.cast(found["label"], tf.float32),
        "floats": tf.math.log1p(tf.stack([found[name] for name in FLOATS], axis=1)),
        "ids": _hashed(tf.stack([found[name] for name in IDS], axis=1)),
        "history": _hashed(found[LIST].flat_values),
        "lengths": found[LIST].row_lengths(),
    }


def parsed_batch(record: tf.Tensor) -> dict[str, Any]:
    """One record that is a minibatch, encoded."""
    parts = tf.io.parse_single_example(
        record, {name: tf.io.FixedLenFeature([], tf.string) for name in _PARTS}
    )
    label, floats, ids, history, lengths = (
        tf.io.parse_tensor(parts[name], kind) for name, kind in zip(_PARTS, _TYPES, strict=True)
    )
    return {
        "label": tf.cast(label, tf.float32),
        "floats": tf.math.log1p(floats),
        "ids": _hashed(ids),
        "history": _hashed(history),
        "lengths": lengths,
    }


def main() -> None:
    kind = sys.argv[1]
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    address = server.stdout.readline().strip()

    def read(paths: list[Path]) -> Iterator[int]:
        data = tf.data.TFRecordDataset(written(paths, kind))
        if kind == "examples":
            data = data.batch(MINIBATCH_ROWS).map(parsed_examples, num_parallel_calls=2)
        else:
            data = data.map(parsed_batch, num_parallel_calls=2)
        served = data.apply(
            tf.data.experimental.service.distribute(
                tf.data.experimental.service.ShardingPolicy.OFF, address
            )
        )
        for batch in served.prefetch(2):
            yield int(batch["label"].shape[0])

    try:
        answer(read)
    finally:
        psutil.Process(server.pid).kill()


if __name__ == "__main__":
    main()
