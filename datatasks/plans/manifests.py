"""Manifests: the tasks of one stream of a window, as an Arrow file in the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.datatasks.task_table import TASK_SCHEMA

MANIFEST_SCHEMA = pa.schema(
    [
        pa.field("task_id", pa.string()),
        pa.field("source", pa.string()),
        *(field for field in TASK_SCHEMA if field.name != "span"),
        pa.field("last", pa.int32()),  # see DataTask
    ]
)
_ROWS_PER_BATCH = 1 << 17


def with_ids(tasks: pa.Table, source: str, first: int = 0) -> pa.Table:
    """Tasks of one source (TASK_SCHEMA without or with span) as rows of a manifest, numbered.

    first: the number of the first one.
    """
    numbers = pa.array(np.arange(first, first + tasks.num_rows)).cast(pa.string())
    ids = pc.binary_join_element_wise(pa.scalar(source), numbers, "/")
    columns = {
        "task_id": ids,
        "source": pa.repeat(pa.scalar(source), tasks.num_rows),
        "last": pa.nulls(tasks.num_rows, pa.int32()),
        **{name: tasks[name] for name in MANIFEST_SCHEMA.names if name in tasks.column_names},
    }
    return pa.table(columns, schema=MANIFEST_SCHEMA)


def manifest_bytes(table: pa.Table) -> memoryview:
    """The content of a manifest. The table has its columns, in any order."""
    return arrow_bytes(table.select(MANIFEST_SCHEMA.names).cast(MANIFEST_SCHEMA))


def arrow_bytes(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=_ROWS_PER_BATCH)
    return memoryview(sink.getvalue())


def read_manifests(paths: Iterable[Path], sources: Iterable[str]) -> pa.Table:
    """The tasks of all streams, ordered by (hour, source order, number).

    sources: names of the plan's sources, in the pipeline's order.
    """
    return in_task_order([read_arrow(path) for path in paths], sources)


def in_task_order(tables: Sequence[pa.Table], sources: Iterable[str]) -> pa.Table:
    """As `read_manifests`, of what is read."""
    table = pa.concat_tables([MANIFEST_SCHEMA.empty_table(), *tables]).combine_chunks()
    order = np.asarray(pc.index_in(table["source"], pa.array(list(sources), pa.string())))
    hours = np.asarray(table["hour"])
    if len(tables) > 1 or (np.diff(hours) < 0).any():
        table = table.take(pa.array(np.lexsort((np.arange(len(hours)), order, hours))))
    return table


def tables_of(contents: Iterable[bytes]) -> list[pa.Table]:
    """The tables of Arrow files that are in memory; those without content have none."""
    return [pa.ipc.open_file(pa.py_buffer(each)).read_all() for each in contents if each]


def read_arrow(path: Path) -> pa.Table:
    """The table of an Arrow file, mapped into memory."""
    with pa.memory_map(str(path)) as handle:
        return pa.ipc.open_file(handle).read_all()
