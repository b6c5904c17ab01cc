"""Counts the demo's rows from the stored data alone. Imports nothing else from Forebay, on purpose.

The model's record of the rows it has seen is proven only if a tool that shares no code with it gets
the same row counts and row sums. `docs/internals/guarantees.md` defines the sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import farmhash
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

Unsigned = npt.NDArray[np.uint64]
Json = dict[str, Any]


class Stored(NamedTuple):
    """Every row of one source: its id, the time that decides its window, whether it has a label."""

    ids: Unsigned
    at: npt.NDArray[np.int64]  # microseconds since 1970, UTC
    labelled: npt.NDArray[np.bool_]


def splitmix64(values: Unsigned) -> Unsigned:
    """The mixing step of the SplitMix64 generator."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def row_ids(path: str, rows: npt.NDArray[np.integer[Any]]) -> Unsigned:
    """Ids of rows, from the file or partition that contains them and their number in it."""
    start = np.uint64(farmhash.fingerprint64(path) % 2**64)
    return splitmix64(start + rows.astype(np.uint64))


def parquet_rows(
    root: Path, folder: str = "", *, time: str = "sched_dep", label: str = "late"
) -> Stored:
    """Parquet files below `root/folder`; paths are relative to `root`, rows count per file."""
    pieces = []
    for file in sorted((root / folder).rglob("*.parquet")):
        table = pq.ParquetFile(file).read([time, label])
        ids = row_ids(file.relative_to(root).as_posix(), np.arange(table.num_rows))
        at = table[time].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
        pieces.append(Stored(ids, at, _present(table[label])))
    return _together(pieces)


def log_rows(folder: Path, *, label: str = "late") -> Stored:
    """Segments `PARTITION/OFFSET-ROWS-MILLISECONDS.arrow`; rows are numbered per partition."""
    pieces = []
    for file in sorted(folder.glob("*/*.arrow")):
        offset, rows, committed = (int(part) for part in file.stem.split("-"))
        with pa.memory_map(str(file)) as source:
            labels = pa.ipc.open_file(source).read_all()[label]
        ids = row_ids(file.parent.name, np.arange(offset, offset + rows))
        pieces.append(Stored(ids, np.full(rows, committed * 1000), _present(labels)))
    return _together(pieces)


def kafka_rows(bootstrap: str, topic: str, label: str = "late") -> Stored:
    """Arrow IPC messages of a topic, read by a plain consumer that commits no offsets."""
    pieces = []
    for record in _messages(bootstrap, topic):
        labels = pa.ipc.open_stream(record.value).read_all()[label]
        message = row_ids(f"{topic}/{record.partition}", np.array([record.offset]))
        rows = len(labels)
        ids = splitmix64(np.repeat(message, rows) + np.arange(rows).view(np.uint64))
        pieces.append(Stored(ids, np.full(rows, record.timestamp * 1000), _present(labels)))
    return _together(pieces)


def row_sums(ids: Unsigned) -> dict[str, int]:
    """Count, sum and sum of squares, as 64-bit integers that wrap around."""
    return {
        "rows": len(ids),
        "sum": int(ids.sum(dtype=np.uint64).view(np.int64)),
        "sum_of_squares": int((ids * ids).sum(dtype=np.uint64).view(np.int64)),
    }


def disagreements(summary: Json, stored: Mapping[str, Stored]) -> list[str]:
    """Where the summary of a run differs from the stored rows; empty when nothing does.

    Compares planned, served, trained and dead rows of every source and window, and the model's row
    sums over all windows of its chain.
    """
    found = []
    for name, rows in stored.items():
        trained = np.zeros(len(rows.ids), dtype=np.bool_)
        for window in _windows(summary):
            claimed = window["sources"][name]
            inside = _inside(rows, claimed)
            trained |= inside & rows.labelled
            counted = _counts(inside, rows.labelled)
            found += [
                f"window {window['window']}, source {name}: {key} is {claimed[key]}, "
                f"the stored data has {value}"
                for key, value in counted.items()
                if claimed[key] not in ({value, None} if key == "planned_rows" else {value})
            ]
        sums, seen = row_sums(rows.ids[trained]), summary["seen"][name]
        if sums != seen:
            found.append(f"source {name}: the model has seen {seen}, the stored data gives {sums}")
    return found


def lost_and_repeated(summary: Json, stored: Mapping[str, Stored]) -> tuple[int, int]:
    """Numbers of rows that the model should have seen but has not, and that it saw too often."""
    gaps = []
    for name, rows in stored.items():
        windows = [_inside(rows, window["sources"][name]) for window in _windows(summary)]
        expected = sum(int((inside & rows.labelled).sum()) for inside in windows)
        gaps.append(expected - summary["seen"][name]["rows"])
    return sum(max(0, gap) for gap in gaps), sum(max(0, -gap) for gap in gaps)


def _windows(summary: Json) -> list[Json]:
    warm = summary.get("warm_start")
    return [*([warm] if warm else []), *summary["windows"]]


def _inside(rows: Stored, claimed: Json) -> npt.NDArray[np.bool_]:
    """Which rows a source's window contains."""
    return (rows.at >= _instant(claimed["data_from"])) & (rows.at < _instant(claimed["data_to"]))


def _counts(inside: npt.NDArray[np.bool_], labelled: npt.NDArray[np.bool_]) -> dict[str, int]:
    everything, trained = int(inside.sum()), int((inside & labelled).sum())
    return {
        "planned_rows": everything,
        "served_rows": everything,
        "trained_rows": trained,
        "dead_letter_rows": everything - trained,
    }


def _messages(bootstrap: str, topic: str) -> Iterator[Any]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    try:
        numbers = consumer.partitions_for_topic(topic) or set()
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        left = {place for place, end in ends.items() if end > 0}
        while left:
            for records in consumer.poll(timeout_ms=500).values():
                yield from records
            left = {place for place in left if consumer.position(place) < ends[place]}
    finally:
        consumer.close()


def _together(pieces: list[Stored]) -> Stored:
    if not pieces:
        nothing = np.empty(0, dtype=np.int64)
        return Stored(nothing.view(np.uint64), nothing, np.empty(0, dtype=np.bool_))
    return Stored(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def _present(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy())


def _instant(text: str) -> int:
    return int(pd.Timestamp(text).tz_convert("UTC").value // 1000)
