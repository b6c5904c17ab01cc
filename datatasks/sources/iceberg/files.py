"""What a snapshot says about its data files, and which of them our own Parquet loop may read."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.datatasks.sources.common.bundles import SPLIT_ROWS
from forebay.datatasks.sources.common.files import READ_ERRORS, read_failure
from forebay.datatasks.sources.common.times import Spans
from forebay.datatasks.sources.parquet.footers import (
    KNOWN,
    Footer,
    arrow_file,
    footer_of,
    read_footer,
)
from forebay.datatasks.sources.parquet.plan import Opened
from forebay.errors import DataError

_THREADS = 8
_FIELD_ID = b"PARQUET:field_id"
# In microseconds; nanosecond ones are cut by their footers.
_TIMESTAMPS = frozenset({"timestamp", "timestamptz"})


@dataclass(frozen=True)
class DataFile:
    """One data file of a snapshot.

    low, high: bounds of the event time in microseconds, None where the manifest says none.
    task: pyiceberg's FileScanTask. version: what makes its rows others (delete files, schema).
    """

    path: str
    rows: int
    size_bytes: int
    low: int | None
    high: int | None
    task: Any
    version: str


def event_time_filter(table: Any, column: str, spans: Spans) -> Any:  # noqa: ANN401
    """Rows that may lie in the spans: with the spans' hull, or without any time.

    Everything, where the column is no Iceberg timestamp.
    """
    from pyiceberg import expressions

    named: Any = expressions  # its constructors take more than their declared types say
    kind = str(table.schema().find_type(column))
    if kind not in _TIMESTAMPS:
        return named.AlwaysTrue()
    zone = "+00:00" if kind == "timestamptz" else ""
    low, high = (
        np.datetime_as_string(np.datetime64(int(value), "us"), unit="us") + zone
        for value in (spans.starts[0], spans.ends[-1])
    )
    inside = named.And(named.GreaterThanOrEqual(column, low), named.LessThan(column, high))
    return named.Or(inside, named.IsNull(column))


def data_files(
    table: Any,  # noqa: ANN401
    row_filter: Any,  # noqa: ANN401
    column: str,
    relative: Callable[[str], str],
) -> list[DataFile]:
    """The newest snapshot's files in the order of their paths: one pass over its manifests.

    Raises:
        DataError: when it names a file twice.
    """
    field = table.schema().find_field(column)
    found = []
    for task in table.scan(row_filter=row_filter).plan_files():
        low, high = _bounds(task.file, field)
        deletes = sorted(each.file_path for each in task.delete_files)
        found.append(
            DataFile(
                path=relative(task.file.file_path),
                rows=task.file.record_count,
                size_bytes=task.file.file_size_in_bytes,
                low=low,
                high=high,
                task=task,
                version="|".join(deletes),
            )
        )
    _require_one_entry(found)
    return sorted(found, key=lambda file: file.path)


def _require_one_entry(files: Iterable[DataFile]) -> None:
    """Refuse what is named twice: its rows would be trained twice."""
    seen: set[str] = set()
    for file in files:
        place = str(file.task.file.file_path)
        # In buckets `..` is a name like others.
        known = posixpath.normpath(place) if place.startswith(("/", "file:")) else place
        if known in seen:
            raise DataError(
                f"{place} is in the table twice, and its rows would be trained twice: take it out "
                "of the table, and add it once"
            )
        seen.add(known)


class PlainFiles:
    """Tells files that hold the declared columns as they are from those that need pyiceberg.

    Plain is a Parquet file without delete files whose columns have the names and field ids of the
    table's schema now. Footers are opened only where the schema has ever changed, or where the
    manifest does not list a column.
    """

    def __init__(self, table: Any, columns: Iterable[str], opened: Opened) -> None:  # noqa: ANN401
        """`columns` are the declared ones that the table has."""
        self._opened = opened
        schema = table.schema()
        self._ids = {name: schema.find_field(name).field_id for name in columns}
        self._leaves = {_leaf_id(schema.find_field(name)) for name in columns}
        self._evolved = len(table.schemas()) > 1

    def plain(self, file: DataFile) -> bool:
        """Whether our own loop reads this file."""
        if file.task.delete_files or file.task.file.file_format.value != "PARQUET":
            return False
        listed: Mapping[int, int] = file.task.file.column_sizes or {}
        if not self._evolved and self._leaves <= set(listed):
            return True
        try:
            with self._opened(file.path) as handle, pq.ParquetFile(handle) as opened:
                return self._same(opened.schema_arrow)
        except READ_ERRORS as error:
            raised = read_failure(error, file.path)
            if raised is not None:
                raise raised from error
            return True  # the Parquet loop names a broken file by the source's policy

    def _same(self, stored: pa.Schema) -> bool:
        for name, field_id in self._ids.items():
            if name not in stored.names:
                return False
            written = (stored.field(name).metadata or {}).get(_FIELD_ID)
            if written is not None and int(written) != field_id:
                return False
        return True


def footers(
    files: list[DataFile], spans: Spans, event_time: str, opened: Opened
) -> list[Footer | str]:
    """Footers as the planner takes them: out of the manifest where it says enough."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda file: _footer(file, spans, event_time, opened), files))


def _footer(file: DataFile, spans: Spans, event_time: str, opened: Opened) -> Footer | str:
    if file.low is not None and file.high is not None and file.rows <= SPLIT_ROWS:
        low, high = spans.index(np.array([file.low, file.high]))
        if low == high and low >= 0:
            one = np.array([[file.rows, file.size_bytes, file.low, file.high, KNOWN]], np.int64)
            rows, size, first, last, state = (one[:, column] for column in range(5))
            return Footer(rows, size, first, last, state)
    try:
        with opened(file.path) as handle:
            return footer_of(*read_footer(arrow_file(handle)), event_time, file.path)
    except READ_ERRORS as error:
        raised = read_failure(error, file.path)
        if raised is not None:
            raise raised from error
        return str(error).strip()


def _bounds(file: Any, field: Any) -> tuple[int | None, int | None]:  # noqa: ANN401
    from pyiceberg.conversions import from_bytes

    low = (file.lower_bounds or {}).get(field.field_id)
    high = (file.upper_bounds or {}).get(field.field_id)
    if low is None or high is None or str(field.field_type) not in _TIMESTAMPS:
        return None, None
    return int(from_bytes(field.field_type, low)), int(from_bytes(field.field_type, high))


def _leaf_id(field: Any) -> int:  # noqa: ANN401
    element = getattr(field.field_type, "element_field", None)
    return int(field.field_id if element is None else _leaf_id(element))
