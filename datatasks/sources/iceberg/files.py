"""What a snapshot says about its data files, and which of them our own Parquet loop may read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from forebay.datatasks.sources.common.files.bundles import SPLIT_ROWS
from forebay.datatasks.sources.common.row_groups.planner import Footer
from forebay.datatasks.sources.common.row_groups.states import KNOWN
from forebay.datatasks.sources.common.values.times import Spans
from forebay.datatasks.sources.iceberg.table import one_spelling
from forebay.datatasks.sources.parquet.footers import Opened, read_footers, read_schemas
from forebay.errors import DataError
from forebay.system.instants import to_us

_FIELD_ID = b"PARQUET:field_id"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# In microseconds; nanosecond ones are cut by their footers.
_TIMESTAMPS = frozenset({"timestamp", "timestamptz"})
# By so much the upper bounds of some writers are too low, who count in milliseconds.
CUT_US = 1_000
_FIRST_US = to_us(datetime.min.replace(tzinfo=UTC))


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


def event_time_filters(table: Any, column: str, spans: Spans) -> list[Any]:  # noqa: ANN401
    """Rows that may be in the spans: those with the spans' hull, and those without any time.

    Everything, where the column is no Iceberg timestamp. Two filters, where partitions are made
    from it: pyiceberg compares a null partition with the ends of the hull, if one filter has both.
    """
    from pyiceberg import expressions

    named: Any = expressions  # its constructors take more than their declared types say
    field = table.schema().find_field(column)
    kind = str(field.field_type)
    if kind not in _TIMESTAMPS:
        return [named.AlwaysTrue()]
    zone = "+00:00" if kind == "timestamptz" else ""
    low, high = (
        np.datetime_as_string(np.datetime64(int(value), "us"), unit="us") + zone
        for value in (max(spans.starts[0] - CUT_US, _FIRST_US), spans.ends[-1])
    )
    inside = named.And(named.GreaterThanOrEqual(column, low), named.LessThan(column, high))
    without = named.IsNull(column)
    if any(spec.fields_by_source_id(field.field_id) for spec in table.specs().values()):
        return [inside, without]
    return [named.Or(inside, without)]


def data_files(
    table: Any,  # noqa: ANN401
    row_filters: Sequence[Any],
    column: str,
    relative: Callable[[str], str],
) -> list[DataFile]:
    """The newest snapshot's files in the order of their paths. DataError for one named twice."""
    tasks: list[Any] = []
    for row_filter in row_filters:
        known = {task.file.file_path for task in tasks}
        planned = table.scan(row_filter=row_filter).plan_files()
        tasks += [task for task in planned if task.file.file_path not in known]
    seen: set[str] = set()
    for task in tasks:
        place = str(task.file.file_path)
        spelling = one_spelling(place)
        if spelling in seen:
            raise DataError(
                f"{place} is in the table twice, and its rows would be trained twice: take it out "
                "of the table, and add it once"
            )
        seen.add(spelling)
    found = []
    for task in tasks:
        low, high = manifest_bounds(table, task, column)
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
    return sorted(found, key=lambda file: file.path)


def plain_files(
    table: Any,  # noqa: ANN401
    columns: Iterable[str],
    files: Sequence[DataFile],
    opened: Opened,
    place: Callable[[str], str],
) -> list[int]:
    """The indices of files that hold the declared columns as they are; others need pyiceberg.

    Plain is a Parquet file without delete files whose columns have the names and field ids of the
    table's schema now. Footers are opened only where the schema has ever changed, where the
    manifest does not list a column, or where files may spell its name otherwise.
    """
    schema = table.schema()
    fields = {name: schema.find_field(name) for name in columns}
    leaves = {_leaf_id(field) for field in fields.values()}
    # Writers store other names in another spelling, as Avro demands: `a b` as `a_x20b`.
    is_spelled = all(_PLAIN_NAME.fullmatch(name) for name in fields)
    evolved = len(table.schemas()) > 1 or not is_spelled
    chosen = [
        index
        for index, file in enumerate(files)
        if not file.task.delete_files and file.task.file.file_format.value == "PARQUET"
    ]
    listed = {
        index
        for index in chosen
        if not evolved and leaves <= set(files[index].task.file.column_sizes or {})
    }
    unsure = [files[index].path for index in chosen if index not in listed]
    schemas = iter(read_schemas(unsure, opened, place))
    return [index for index in chosen if index in listed or _has_all(next(schemas), fields)]


def _has_all(stored: pa.Schema | str, fields: Mapping[str, Any]) -> bool:
    if isinstance(stored, str):
        return True  # the Parquet loop names a broken file by the source's policy
    for name, field in fields.items():
        if name not in stored.names:
            return False
        written = (stored.field(name).metadata or {}).get(_FIELD_ID)
        if written is not None and int(written) != field.field_id:
            return False
    return True


def footers(
    files: Sequence[DataFile],
    spans: Spans,
    event_time: str,
    opened: Opened,
    place: Callable[[str], str],
) -> list[Footer | str]:
    """Footers as the planner takes them: out of the manifest where it says enough."""
    known = [_of_manifest(file, spans) for file in files]
    paths = [file.path for file, footer in zip(files, known, strict=True) if footer is None]
    read = iter(read_footers(paths, opened, place, event_time))
    return [next(read) if footer is None else footer for footer in known]


def agrees(file: DataFile, footer: Footer | str) -> bool:
    """Whether a footer says no time outside of what the manifest says, by which files are found."""
    if isinstance(footer, str) or file.low is None or file.high is None:
        return True
    known = footer.state == KNOWN
    low, high = footer.low[known], footer.high[known]
    return bool((low >= file.low).all() and (high <= file.high + CUT_US).all())


def _of_manifest(file: DataFile, spans: Spans) -> Footer | None:
    if file.low is None or file.high is None or file.rows > SPLIT_ROWS:
        return None
    low, high = spans.index(np.array([file.low, file.high + CUT_US]))
    if low != high or low < 0:
        return None
    one = np.array([[file.rows, file.size_bytes, file.low, file.high, KNOWN]], np.int64)
    rows, size, first, last, state = (one[:, column] for column in range(5))
    return Footer(rows, size, first, last, state)


def manifest_bounds(table: Any, task: Any, column: str) -> tuple[int | None, int | None]:  # noqa: ANN401
    """What a file's event times are between, in microseconds; None where the manifest says less."""
    from pyiceberg.conversions import from_bytes

    field, file = table.schema().find_field(column), task.file
    low = (file.lower_bounds or {}).get(field.field_id)
    high = (file.upper_bounds or {}).get(field.field_id)
    if low is None or high is None or str(field.field_type) not in _TIMESTAMPS:
        return None, None
    return int(from_bytes(field.field_type, low)), int(from_bytes(field.field_type, high))


def _leaf_id(field: Any) -> int:  # noqa: ANN401
    element = getattr(field.field_type, "element_field", None)
    return int(field.field_id if element is None else _leaf_id(element))
