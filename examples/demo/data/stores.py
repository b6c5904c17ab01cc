"""Writes the flights where the demo's sources read: an Iceberg table, Parquet files, a stream."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.datatasks.sources.log.writer import LogWriter

ICEBERG_ORIGINS = ("EWR", "JFK")
FILE_ORIGINS = ("LGA",)
PARTITIONS = 2
_HOUR_MS = 3_600_000


class MicroBatch(NamedTuple):
    """Rows that one producer sends together, and when."""

    partition: int
    sent_ms: int
    batch: pa.RecordBatch


def micro_batches(rows: pa.Table, wait: timedelta) -> Iterator[MicroBatch]:
    """Hourly micro-batches in the order they were sent.

    A row is published `wait` after its scheduled departure; a micro-batch has the rows of one clock
    hour and the time of its last row, so all of its rows are in the same window.
    """
    published = pc.add(rows["sched_dep"], pa.scalar(wait)).cast(pa.int64()).to_numpy() // 1000
    partition = rows["id"].to_numpy() % PARTITIONS
    keys = published // _HOUR_MS * PARTITIONS + partition
    order = np.argsort(keys, kind="stable")
    ordered = rows.take(order).combine_chunks().to_batches()[0]
    edges = np.flatnonzero(np.diff(keys[order], prepend=-1, append=-1)).tolist()
    for start, end in pairwise(edges):
        last = int(published[order[start:end]].max())
        number = int(keys[order[start]] % PARTITIONS)
        yield MicroBatch(number, last, ordered.slice(start, end - start))


def write_parquet(rows: pa.Table, folder: Path) -> None:
    """One file for each day, `date=YYYY-MM-DD/part-0.parquet`."""
    days = pc.strftime(rows["sched_dep"], format="%Y-%m-%d")
    for day in pc.unique(days).to_pylist():
        target = folder / f"date={day}"
        target.mkdir(parents=True)
        pq.write_table(rows.filter(pc.equal(days, day)), target / "part-0.parquet")


def write_log(rows: pa.Table, folder: Path, wait: timedelta) -> None:
    """An append-only log of hourly segments in two partitions."""
    sent: list[list[MicroBatch]] = [[] for _ in range(PARTITIONS)]
    for one in micro_batches(rows, wait):
        sent[one.partition].append(one)

    def write(partition: int) -> None:
        LogWriter(folder, partition).append_all(
            (pa.Table.from_batches([one.batch]), datetime.fromtimestamp(one.sent_ms / 1000, UTC))
            for one in sent[partition]
        )

    # Each segment waits for the disk, so the partitions are written in parallel.
    with ThreadPoolExecutor(PARTITIONS) as pool:
        list(pool.map(write, range(PARTITIONS)))


def write_iceberg(rows: pa.Table, folder: Path, identifier: str) -> None:
    """A table partitioned by day in a SQLite catalog, one append for each month.

    The day is a stored column: partitioning by a transform of `sched_dep` would need another
    package for writing, though not for reading.
    """
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.transforms import IdentityTransform

    folder.mkdir(parents=True)
    catalog = SqlCatalog(
        "demo", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    dated = rows.append_column("day", rows["sched_dep"].cast(pa.date32()))
    months = pc.strftime(rows["sched_dep"], format="%Y-%m")
    try:
        catalog.create_namespace(identifier.split(".", maxsplit=1)[0])
        table = catalog.create_table(identifier, dated.schema)
        with table.update_spec() as update:
            update.add_field("day", IdentityTransform())
        for month in pc.unique(months).to_pylist():
            table.append(dated.filter(pc.equal(months, month)))
    finally:
        catalog.close()


def origins(rows: pa.Table, wanted: tuple[str, ...]) -> pa.Table:
    return rows.filter(pc.is_in(rows["origin"], value_set=pa.array(wanted)))
