"""Row sums recomputed from stored data alone: imports nothing of forebay.

The definition is that of docs/internals/guarantees.md: splitmix64(fingerprint64(path) + row),
wrapping.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import farmhash
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Sums = dict[str, int]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = values + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def row_ids(path: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    base = np.uint64(farmhash.fingerprint64(path))
    with np.errstate(over="ignore"):
        return splitmix64(base + rows.astype(np.uint64)).view(np.int64)


def sums(parts: Iterable[npt.NDArray[np.int64]]) -> Sums:
    ids = np.concatenate([np.empty(0, np.int64), *parts])
    with np.errstate(over="ignore"):
        return {"rows": len(ids), "sum": int(ids.sum()), "sum_of_squares": int((ids * ids).sum())}


def parquet_sums(folder: Path, where: str = "true", files: str = "**/*.parquet") -> Sums:
    """Sums over rows of a Parquet folder; `where` is SQL over the stored columns."""
    table = duckdb.sql(
        f"select filename, file_row_number as row from read_parquet("
        f"'{folder}/{files}', filename = true, file_row_number = true, hive_partitioning = false) "
        f"where {where}"
    ).fetchnumpy()
    names = np.asarray(table["filename"], dtype=object)
    parts = []
    for name in np.unique(names.astype(str)):
        path = Path(name).relative_to(folder).as_posix()
        parts.append(row_ids(path, np.asarray(table["row"], dtype=np.int64)[names == name]))
    return sums(parts)


def log_sums(folder: Path, first_ms: int, end_ms: int) -> Sums:
    parts = []
    for path in sorted(folder.glob("*/*.arrow")):
        base, _, commit = path.stem.split("-")
        if not first_ms <= int(commit) < end_ms:
            continue
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
        numbers = int(base) + np.arange(table.num_rows, dtype=np.int64)
        parts.append(row_ids(path.parent.name, numbers))
    return sums(parts)


def line_sums(folder: Path, files: str) -> Sums:
    parts = []
    for path in folder.glob(files):
        with gzip.open(path) as lines:
            count = sum(1 for _ in lines)
        parts.append(row_ids(path.relative_to(folder).as_posix(), np.arange(count)))
    return sums(parts)


def kafka_sums(
    bootstrap: str, topic: str, first_ms: int, end_ms: int, *, one_row: bool = False
) -> Sums:
    """Sums over the rows of messages stamped in [first_ms, end_ms), by a plain consumer.

    `one_row`: a message is a row (json); otherwise it is an Arrow IPC stream of several.
    """
    parts = []
    for record in messages(bootstrap, topic):
        if not first_ms <= record.timestamp < end_ms:
            continue
        if one_row:
            parts.append(row_ids(f"{topic}/{record.partition}", np.array([record.offset])))
        else:
            rows = pa.ipc.open_stream(record.value).read_all().num_rows
            parts.append(message_row_ids(topic, record, rows))
    return sums(parts)


def message_row_ids(topic: str, record: Any, rows: int) -> npt.NDArray[np.int64]:
    message = row_ids(f"{topic}/{record.partition}", np.array([record.offset]))
    ids = np.repeat(message.view(np.uint64), rows) + np.arange(rows, dtype=np.uint64)
    return splitmix64(ids).view(np.int64)


def messages(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> Iterator[Any]:
    with _consumer(bootstrap, topic, None, isolation) as (consumer, partitions):
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(place) < ends[place] for place in partitions):
            for records in consumer.poll(timeout_ms=500).values():
                yield from records


def kafka_ends(bootstrap: str, topic: str, instant_ms: int | None = None) -> dict[int, int]:
    """For each partition the offset behind its last record, or of the first one not before."""
    with _consumer(bootstrap, topic, None) as (consumer, partitions):
        ends = consumer.end_offsets(partitions)
        if instant_ms is not None:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, instant_ms))
            ends |= {place: at.offset for place, at in found.items() if at is not None}
    return {place.partition: int(offset) for place, offset in ends.items()}


def kafka_committed(bootstrap: str, topic: str, group: str) -> dict[int, int]:
    with _consumer(bootstrap, topic, group) as (consumer, partitions):
        found = {place.partition: consumer.committed(place) for place in partitions}
    return {partition: offset for partition, offset in found.items() if offset is not None}


@contextmanager
def _consumer(
    bootstrap: str, topic: str, group: str | None, isolation: str = "read_uncommitted"
) -> Iterator[tuple[Any, list[Any]]]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        isolation_level=isolation,
    )
    try:
        numbers = sorted(consumer.partitions_for_topic(topic) or ())
        assert numbers, f"{bootstrap} has no topic {topic}"
        yield consumer, [TopicPartition(topic, number) for number in numbers]
    finally:
        consumer.close()


def added(*several: Mapping[str, int]) -> Sums:
    """Wrapping sum of sums."""

    def wrap(value: int) -> int:
        return (value + 2**63) % 2**64 - 2**63

    return {
        "rows": sum(one["rows"] for one in several),
        "sum": wrap(sum(one["sum"] for one in several)),
        "sum_of_squares": wrap(sum(one["sum_of_squares"] for one in several)),
    }
