"""From stored batches to chunks: cast, take out bad rows, join small pieces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES
from forebay.datatasks.sources.common.values.casting import fit
from forebay.datatasks.sources.common.values.row_texts import row_texts, written_text
from forebay.datatasks.sources.common.values.times import falls
from forebay.datatasks.tasks import Chunk, DeadRow, Position
from forebay.errors import DataError

_JOINED_BYTES_MAX = 32 << 20
Ints = npt.NDArray[np.int64]
Locate = Callable[[int], dict[str, str | int]]


@dataclass(frozen=True)
class Stored:
    """Consecutive stored rows of one row range, before casting.

    batch: stored columns, at least the asked ones.
    rows: row number of each row inside its file; row_ids and hours: as in `Chunk`.
    end: the position after these rows (and after rows that were cut away after them).
    locate: where a row is, for dead letters and error texts.
    bad: rows (index in the batch) that are bad already, and why.
    outside, published, times: as in `Chunk`.
    text: the bytes of a row as people wrote them, where they did, for dead letters.
    """

    batch: pa.RecordBatch
    part: int
    rows: Ints
    row_ids: Ints
    hours: npt.NDArray[np.int32]
    end: Position
    locate: Locate
    bad: Mapping[int, str]
    outside: npt.NDArray[np.int8] | None = None
    published: Ints | None = None
    times: Ints | None = None
    text: Callable[[int], bytes] | None = None


def to_chunk(
    stored: Stored,
    columns: Sequence[str],
    declared: Mapping[str, ColumnType],
    policy: Literal["fail", "dead_letter"],
) -> Chunk:
    """Cast the asked columns; rows that do not fit leave as dead rows.

    Raises:
        DataError: for the first bad row, when the policy is `fail`.
    """
    fitted = fit(stored.batch, columns, declared, as_held=True)
    bad = {**fitted.bad, **stored.bad}
    if bad and policy == "fail":
        first = min(bad)
        raise DataError(f"{place_text(stored.locate(int(stored.rows[first])))}: {bad[first]}")
    parts = np.full(len(stored.rows), stored.part, np.int64)
    kept: Ints | slice = slice(None)
    batch = fitted.batch
    if bad:
        kept = np.setdiff1d(np.arange(len(stored.rows)), np.fromiter(bad, np.int64))
        batch = batch.take(pa.array(kept))
    return Chunk(
        batch,
        stored.row_ids[kept],
        parts[kept],
        stored.rows[kept],
        stored.hours[kept],
        stored.end,
        _dead_rows(stored, bad),
        outside=None if stored.outside is None else stored.outside[kept],
        published=None if stored.published is None else stored.published[kept],
        times=None if stored.times is None else stored.times[kept],
    )


def _dead_rows(stored: Stored, bad: Mapping[int, str]) -> tuple[DeadRow, ...]:
    dead, indices = [], sorted(bad)
    decoded = row_texts(stored.batch, indices if stored.text is None else [])
    for number, index in enumerate(indices):
        row = int(stored.rows[index])
        text = decoded[number] if stored.text is None else written_text(stored.text(row))
        place, location = Position(stored.part, row), stored.locate(row)
        dead.append(DeadRow(position=place, location=location, reason=bad[index], row=text))
    return tuple(dead)


def bad_texts(
    batch: pa.RecordBatch, columns: Sequence[str], declared: Mapping[str, ColumnType]
) -> dict[int, str]:
    """Rows (index to reason) whose texts are no UTF-8: of some formats Arrow takes any bytes."""
    found: dict[int, str] = {}
    for name in columns:
        kind = declared[name]  # of thousands of columns a hash of each would be felt
        if kind is ColumnType.STRING or kind is ColumnType.LIST_STRING:
            for row in _invalid(batch.column(name)):
                found[row] = f"column {name!r} as {declared[name].value}: it is not UTF-8 text"
    return found


def _invalid(column: pa.Array) -> list[int]:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        if not pat.is_nested(column.type):
            return list(_invalid_texts(column, 0))
        items = list(_invalid_texts(pc.list_flatten(column), 0))
        parents = pc.list_parent_indices(column).take(pa.array(items, pa.int64()))
        return sorted(set(parents.to_pylist()))
    return []


def _invalid_texts(column: pa.Array, first: int) -> Iterator[int]:
    """By halving: few looks where few are bad."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        if pat.is_dictionary(column.type):
            yield from _invalid_texts(column.dictionary_decode(), first)
        elif len(column) == 1:
            yield first
        else:
            half = len(column) // 2
            yield from _invalid_texts(column.slice(0, half), first)
            yield from _invalid_texts(column.slice(half), first + half)


def place_text(location: Mapping[str, str | int]) -> str:
    """A location in words: `file a.parquet, row_group 0, row 17`."""
    return ", ".join(f"{key} {value}" for key, value in location.items())


def empty_chunk(
    columns: Sequence[str],
    declared: Mapping[str, ColumnType],
    end: Position,
    dead: tuple[DeadRow, ...] = (),
) -> Chunk:
    """No rows, but perhaps dead ones, up to `end`."""
    batch = _no_rows(tuple((name, declared[name]) for name in columns))
    none = np.zeros(0, np.int64)
    return Chunk(batch, none, none, none, none.astype(np.int32), end, dead)


@functools.lru_cache(maxsize=8)
def _no_rows(columns: tuple[tuple[str, ColumnType], ...]) -> pa.RecordBatch:
    """Every task ends with it, and of thousands of columns it is made slowly."""
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns])
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)


def stored_rows(chunk_rows: int) -> int:
    """How many rows to read at a time, so that `joined` reads nothing ahead."""
    return max(1, chunk_rows * 3 // 4)


def waits_for_more(rows: int, chunk_rows: int) -> bool:
    """Whether `joined` keeps so many rows until it has read more."""
    return rows * 4 < chunk_rows


def joined(chunks: Iterator[Chunk], chunk_rows: int, last: Chunk) -> Iterator[Chunk]:
    """Chunks of up to `chunk_rows` rows with hours that never fall; small ones are joined.

    Those that take much memory wait for no others.

    Where they come with `stored_rows` at most, or with `chunk_rows` while none waits, all that was
    read is given out before more is read.
    `last` (without rows) says where the task ends and is given out when nothing else got there.
    """
    waiting: list[Chunk] = []
    hour = taken = 0
    end: Position | None = None
    for each in chunks:
        chunk = _rising(each, hour)
        hour = int(chunk.hours[-1]) if len(chunk.hours) else hour
        if not waiting and not waits_for_more(_rows([chunk]), chunk_rows):
            end = chunk.end
            yield _join([chunk])
            continue
        size = chunk.batch.nbytes
        is_full = _rows(waiting) + _rows([chunk]) > chunk_rows or taken + size > _JOINED_BYTES_MAX
        if waiting and is_full:
            yield _join(waiting)
            waiting, taken = [], 0
        waiting.append(chunk)
        taken += size
        end = chunk.end
        if not waits_for_more(_rows(waiting), chunk_rows) or taken * 4 >= _JOINED_BYTES_MAX:
            yield _join(waiting)
            waiting, taken = [], 0
    if end != last.end:
        waiting.append(last)
    if waiting:
        yield _join(waiting)


def _rows(chunks: list[Chunk]) -> int:
    return sum(len(chunk.rows) + len(chunk.dead) for chunk in chunks)


def _rising(chunk: Chunk, hour: int) -> Chunk:
    if not len(chunk.hours) or (chunk.hours[0] >= hour and not falls(chunk.hours)):
        return chunk
    rising = np.maximum.accumulate(chunk.hours)
    np.maximum(rising, np.int32(hour), out=rising)
    return replace(chunk, hours=rising)


def _join(chunks: list[Chunk]) -> Chunk:
    full = [chunk for chunk in chunks if len(chunk.rows)]
    dead = tuple(row for chunk in chunks for row in chunk.dead)
    counted = [chunk.runs for chunk in chunks if chunk.runs is not None]
    runs = np.concatenate(counted) if counted else None
    if len(full) <= 1:
        return replace((full or chunks)[0], end=chunks[-1].end, dead=dead, runs=runs)
    return Chunk(
        _concatenate([chunk.batch for chunk in full]),
        np.concatenate([chunk.row_ids for chunk in full]),
        np.concatenate([chunk.parts for chunk in full]),
        np.concatenate([chunk.rows for chunk in full]),
        np.concatenate([chunk.hours for chunk in full]),
        chunks[-1].end,
        dead,
        _joined_outside(full),
        runs,
        _joined_times([chunk.published for chunk in full]),
        _joined_times([chunk.times for chunk in full]),
    )


def _joined_outside(chunks: list[Chunk]) -> npt.NDArray[np.int8] | None:
    if all(chunk.outside is None for chunk in chunks):
        return None
    return np.concatenate(
        [
            np.zeros(len(chunk.rows), np.int8) if chunk.outside is None else chunk.outside
            for chunk in chunks
        ]
    )


def _joined_times(chunks: list[Ints | None]) -> Ints | None:
    found = [times for times in chunks if times is not None]
    return np.concatenate(found) if len(found) == len(chunks) else None


def _concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if batches[0].num_columns:
        first, *others = [each.schema for each in batches]
        if all(first.equals(other) for other in others):
            return pa.concat_batches(batches)
        # Some files have float32 where others have float64.
        wider = pa.unify_schemas([first, *others], promote_options="permissive")
        return pa.concat_batches([each.cast(wider) for each in batches])
    return without_columns(sum(batch.num_rows for batch in batches))


def without_columns(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], names=["_"]).select([])
