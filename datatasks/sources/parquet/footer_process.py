"""A child of whoever plans, which parses footers of Parquet files and may die of them.

Run as `python -m forebay.datatasks.sources.parquet.footer_process`. It is sent bytes alone, and so
needs no way to the storage and none of its keys. On stdin each call is a line of JSON with the
number of bytes after it; each answer is a line of JSON on what was stdout.

Imports nothing of Forebay that takes time: its start is paid by every plan that meets new files.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.datatasks.sources.common.row_groups.states import ALL_NULL, KNOWN, TO_READ
from forebay.system.processes.ends import give_way_first, ignore_ctrl_c

MODULE = "forebay.datatasks.sources.parquet.footer_process"
UNKNOWN = -(2**63)
# Many times what the largest footer that is sent here becomes once it is parsed.
MEMORY_BYTES = 3 << 30
CPU_SECONDS = 60
# Each costs whoever plans time and memory, also where it is of no row; large files have hundreds.
ROW_GROUPS_MAX = 100_000
# Of a file: more than that cannot be true, and sums of it would not be numbers of 64 bits.
ROWS_MAX, BYTES_MAX = 1 << 40, 1 << 50
_DAY_US = 86_400_000_000
_INT64_MAX = 2**63 - 1
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

Bounds = tuple[int, int, int]


def parsed(content: bytes, event_time: str | None, *, schema: bool) -> dict[str, Any]:
    """What the end of a file says.

    Args:
        content: the file's last bytes, with all of its footer.
        event_time: the column whose bounds are wanted.
        schema: whether the file's schema is wanted, and nothing else.

    Returns:
        `groups`: rows, bytes, `low`, `high` (microseconds) and `state` of each row group;
        `schema`, as base64 of Arrow's message, also where the event time is not a plain column.
    """
    metadata = pq.read_metadata(pa.BufferReader(content))
    if schema:
        return {"schema": _text(metadata.schema.to_arrow_schema())}
    if metadata.num_row_groups > ROW_GROUPS_MAX:
        raise ValueError(
            f"it has {metadata.num_row_groups:,} row groups, and at most {ROW_GROUPS_MAX:,} are "
            "read: write larger ones"
        )
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    rows = _counts("rows", [group.num_rows for group in groups], ROWS_MAX)
    sizes = _counts("bytes", [group.total_byte_size for group in groups], BYTES_MAX)
    found: dict[str, Any] = {}
    bounds: list[Bounds] = [(UNKNOWN, UNKNOWN, TO_READ)] * len(groups)
    if event_time is not None:
        arrow_schema = metadata.schema.to_arrow_schema()
        known = group_bounds(metadata, arrow_schema, event_time, groups)
        if known is None:
            found["schema"] = _text(arrow_schema)
        else:
            bounds = known
    return found | {"groups": list(zip(rows, sizes, *zip(*bounds, strict=True), strict=True))}


def _counts(what: str, counts: list[int], most: int) -> list[int]:
    if min(counts, default=0) < 0:
        raise ValueError(f"a row group has a negative number of {what}")
    if sum(counts) > most:
        raise ValueError(f"its footer claims {sum(counts):,} {what}, more than it can have")
    return counts


def group_bounds(
    metadata: pq.FileMetaData, schema: pa.Schema, event_time: str, groups: list[pq.RowGroupMetaData]
) -> list[Bounds] | None:
    """As `bounds_of` of some row groups; None where the event time is not a plain column."""
    stored = _plain_type(schema, event_time)
    if stored is None:
        return None
    leaf = _leaf(metadata, event_time)
    return [bounds_of(group.column(leaf).statistics, stored) for group in groups]


def bounds_of(statistics: pq.Statistics | None, stored: pa.DataType) -> Bounds:
    """Earliest and latest time of a row group's column in microseconds, and what is known."""
    unknown = (UNKNOWN, UNKNOWN, TO_READ)
    if statistics is None:
        return unknown
    if not statistics.has_min_max:
        every = statistics.has_null_count and statistics.num_values == 0
        return (UNKNOWN, UNKNOWN, ALL_NULL) if every and statistics.null_count else unknown
    if pa.types.is_timestamp(stored) and statistics.physical_type == "INT64":
        per_second = _PER_SECOND[_unit(statistics, stored)]
        low, high = (
            raw * 1_000_000 // per_second for raw in (statistics.min_raw, statistics.max_raw)
        )
    elif pa.types.is_date(stored) and statistics.physical_type == "INT32":
        low, high = statistics.min_raw * _DAY_US, statistics.max_raw * _DAY_US
    else:
        return unknown
    return (low, high, KNOWN) if -_INT64_MAX <= low <= high <= _INT64_MAX else unknown


def _plain_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """The type of a column that is a timestamp or a day, and there once."""
    try:
        index = schema.get_field_index(name)
        stored = schema.field(index).type if index >= 0 else None
    except UnicodeDecodeError:  # of another name, perhaps: whoever has the schema says it
        return None
    is_time = stored is not None and (pa.types.is_timestamp(stored) or pa.types.is_date(stored))
    return stored if is_time else None


def _leaf(metadata: pq.FileMetaData, name: str) -> int:
    schema = metadata.schema
    for index in range(len(schema)):
        # Of a nested one the path is longer than the name: `at.x` may be x of a struct.
        if schema.column(index).name == schema.column(index).path == name:
            return index
    raise ValueError(f"its schema for Arrow has a column {name!r}, and its own has none")


def _unit(statistics: pq.Statistics, stored: pa.DataType) -> str:
    """The unit of the raw numbers: the file's own, which need not be the one Arrow shows."""
    names = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
    logical = str(statistics.logical_type)
    return next((unit for name, unit in names.items() if name in logical), stored.unit)


def _text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def answer(call: dict[str, Any], content: bytes) -> dict[str, Any]:
    """What is wrong with a footer is an answer too, as long as the process lives."""
    try:
        return parsed(content, call["event_time"], schema=call["schema"])
    except Exception as error:  # noqa: BLE001 - whatever it is, this footer brought it about
        return {"error": str(error).strip() or type(error).__name__}


def main() -> None:
    """Answer until stdin ends, as it does with whoever started this process."""
    ignore_ctrl_c()  # no footer is to blame
    calls, answers = sys.stdin.buffer, os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is not an answer
    _limit(resource.RLIMIT_AS, MEMORY_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    give_way_first()
    while line := calls.readline():
        call = json.loads(line)
        content = calls.read(call["bytes"])
        # Whatever the CPU time of earlier footers was, this one has that many seconds.
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + CPU_SECONDS)
        _write(answers, json.dumps(answer(call, content)).encode() + b"\n")


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    own = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (own, hard))


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


if __name__ == "__main__":
    main()
