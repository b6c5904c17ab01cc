"""Kind `csv`: each line is one row of fields."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.types as pat

from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.datatasks.sources.common.values.casting import Fitted, cast_or_null, column_problem
from forebay.datatasks.sources.common.values.times import as_utc, no_instants, usual_instants
from forebay.datatasks.sources.records.blocks import Block, lost_rest, one_array
from forebay.datatasks.sources.records.kind import CsvKind
from forebay.datatasks.sources.records.lines import BOM, Lines, is_utf8, seen_type
from forebay.errors import DataError

# What Arrow itself makes of texts as this module does, only faster.
_TYPED: Mapping[ColumnType, pa.DataType] = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float64(),
}
_NUMBER = r"^-?[0-9]+$"
_SENTINEL = b"\n0"
_NO_ROW = "it is no row: a quoted field does not end, or it has a carriage return"


class CsvLines(Lines):
    """Fields are texts until their column's type says otherwise; an empty one is a null."""

    def prepare(self) -> None:
        self._options = cast("CsvKind.Options", self.options)
        self._nulls = ["", *self._options.nulls]
        self._delimiter = self._options.delimiter or ","

    def blocks(self, pieces: Iterator[bytes]) -> Iterator[Block]:
        blocks = super().blocks(pieces)
        self._names = self._options.names or []
        if not self._names:
            block = next(blocks, None)
            if block is None:
                return
            try:
                self._names = self._header(block)
            except (ValueError, csv.Error) as error:
                yield lost_rest(0, 1, f"its first line does not name its columns: {error}")
                return
            if len(block) > 1:
                rest = block.part(1, len(block))
                blocks = (each for part in ([rest], blocks) for each in part)
            blocks = (_renumbered(each) for each in blocks)
        self._require_columns()
        yield from blocks

    def _header(self, block: Block) -> list[str]:
        if block.bad.get(0):
            raise ValueError(block.bad[0])
        (header,) = block.part(0, 1).values()
        return next(csv.reader([header.decode()], delimiter=self._delimiter, strict=True))

    def _require_columns(self) -> None:
        schema = pa.schema([(name, pa.string()) for name in self._names])
        for name in self.columns:
            if problem := column_problem(schema, name, ColumnType.STRING):
                raise DataError(problem)

    def decode(self, block: Block) -> Fitted:
        if not is_utf8(block.data):
            lines = enumerate(block.values())
            bad = {row: "it is not UTF-8" for row, line in lines if not is_utf8(line)}
            return self.decode_all(replace(block, bad=bad))
        fitted = self._read(block, _TYPED) or self._read(block, {})
        if fitted is not None:
            return fitted
        if len(block) == 1:
            return Fitted(self.spread(self.nothing(), np.zeros(0, np.int64), 1), {0: _NO_ROW})
        bad = {row: _NO_ROW for row, line in enumerate(block.values()) if self._is_open(line)}
        if bad:
            return self.decode_all(replace(block, bad=bad))
        half = len(block) // 2
        one = self.decode(block.part(0, half))
        other = self.decode(block.part(half, len(block)))
        bad = one.bad | {half + row: reason for row, reason in other.bad.items()}
        if not self.columns:
            return Fitted(self.spread(one.batch, np.zeros(0, np.int64), len(block)), bad)
        return Fitted(pa.concat_batches([one.batch, other.batch]), bad)

    def stored_schema(self, values: Sequence[bytes]) -> pa.Schema:
        """As Arrow understands them by itself."""
        options = pv.ConvertOptions(null_values=self._nulls)
        table = self._table(b"\n".join(values), options, {})
        columns = zip(table.column_names, table.columns, strict=True)  # some names are there twice
        return pa.schema([(name, seen_type(each.combine_chunks())) for name, each in columns])

    @staticmethod
    def fits(stored: pa.DataType, declared: ColumnType) -> bool:
        if declared is ColumnType.STRING or declared in LIST_ITEMS:
            return True
        if declared is ColumnType.INT:
            return bool(pat.is_integer(stored))
        is_flag = declared is ColumnType.BOOL and pat.is_integer(stored)
        return is_flag or Lines.fits(stored, declared)

    def _is_open(self, line: bytes) -> bool:
        """Whether a line surely is no row. Others are found by halving, which takes long."""
        reader = csv.reader([line.decode(), ""], delimiter=self._delimiter)
        with suppress(csv.Error):
            next(reader)
        return reader.line_num > 1 or b"\r" in line

    def _read(self, block: Block, typed: Mapping[ColumnType, pa.DataType]) -> Fitted | None:
        """The rows of a block; None where a typed value does not fit, or rows are not its lines."""
        types = {name: typed.get(self.declared[name], pa.string()) for name in self.columns}
        wrong: dict[int, str] = {}
        data = _data(block)
        # Of columns that nobody asks for, one: Arrow would read all of them.
        options = pv.ConvertOptions(
            column_types=types or {self._names[0]: pa.string()},
            include_columns=self.columns or self._names[:1],
            null_values=self._nulls,
            strings_can_be_null=True,
            check_utf8=False,  # `decode` does
        )
        # Where a quoted field of the last line does not end, the line after it is missing.
        is_open = b'"' in data
        try:
            table = self._table(data + _SENTINEL if is_open else data, options, wrong)
        except pa.ArrowException:
            return None
        count = len(block)
        if table.num_rows + len(wrong) != count + is_open or _has_lone_returns(data):
            return None
        if is_open and wrong.pop(count, None) is None:
            table = table.slice(0, table.num_rows - 1)
        places = np.arange(count)
        if wrong:
            places = np.setdiff1d(places, np.fromiter(wrong, np.int64))
        if not self.columns:
            return Fitted(self.spread(self.nothing(), places, count), wrong)
        fitted = self._fitted(table)
        bad = wrong | {int(places[row]): reason for row, reason in fitted.bad.items()}
        return Fitted(self.spread(fitted.batch, places, count), bad)

    def _fitted(self, table: pa.Table) -> Fitted:
        arrays, bad = [], dict[int, str]()
        for each in self.schema:
            declared = self.declared[each.name]
            array, odd = self._array(one_array(table[each.name]), declared)
            arrays.append(array)
            said = f"column {each.name!r} as {declared.value}"
            bad = {row: f"{said}: {reason}" for row, reason in odd.items()} | bad
        return Fitted(pa.RecordBatch.from_arrays(arrays, schema=self.schema), bad)

    def _table(self, data: bytes, options: pv.ConvertOptions, wrong: dict[int, str]) -> pa.Table:
        def skip(row: pv.InvalidRow) -> str:
            reason = f"it has {row.actual_columns} fields, and there are {row.expected_columns}"
            wrong[row.number - 1] = reason
            return "skip"

        return pv.read_csv(
            pa.BufferReader(data),
            pv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self._names),
            pv.ParseOptions(delimiter=self._delimiter, invalid_row_handler=skip),
            options,
        )

    def _array(self, stored: pa.Array, declared: ColumnType) -> tuple[pa.Array, dict[int, str]]:
        """A column in its declared type, with nulls for what does not fit, and why it does not."""
        if declared is ColumnType.STRING or stored.type == _TYPED.get(declared):
            return stored, {}
        if declared not in LIST_ITEMS:
            surely = _no_instants if declared is ColumnType.TIMESTAMP else _none
            return cast_or_null(stored, _CASTS[declared], surely, "it is no time")
        lists = pc.split_pattern(stored, self._options.list_separator)
        items = lists.flatten()
        if pc.min(pc.binary_length(items)).as_py() == 0:
            items = pc.if_else(pc.equal(items, ""), pa.scalar(None, items.type), items)
        values, odd = self._array(items, LIST_ITEMS[declared])
        parents = pc.list_parent_indices(lists).to_pylist() if odd else []
        array = pa.ListArray.from_arrays(lists.offsets, values, mask=lists.is_null())
        return array, {parents[item]: reason for item, reason in odd.items()}


def _renumbered(block: Block) -> Block:
    """Without the header among the records before it."""
    return replace(block, first=block.first - 1)


def _data(block: Block) -> bytes:
    """Its lines alone. Arrow passes over a mark of the byte order, but only where data begins."""
    data = block.data[int(block.starts[0]) : int(block.ends[-1])]
    return BOM + data if data.startswith(BOM) else data


def _has_lone_returns(data: bytes) -> bool:
    """Carriage returns that end no line here, but would for Arrow."""
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def _trimmed(target: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    def cast(texts: pa.Array) -> pa.Array:
        try:
            return texts.cast(target)
        except pa.ArrowInvalid:
            return pc.ascii_trim(texts, characters=" \t").cast(target)

    return cast


def _instants(texts: pa.Array) -> pa.Array:
    """Of ISO 8601 texts, or milliseconds since 1970: digits alone are never a day (20260301)."""
    usual = usual_instants(texts)
    if usual is not None:
        return usual
    numbers = pc.match_substring_regex(texts, _NUMBER)
    none = pa.scalar(None, pa.string())
    ticks = pc.if_else(numbers, texts, none).cast(pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
    others = as_utc(pc.if_else(numbers, none, texts))
    return pc.coalesce(ticks.cast(others.type), others)


def _no_instants(texts: pa.Array) -> npt.NDArray[np.bool_]:
    numbers = pc.fill_null(pc.match_substring_regex(texts, _NUMBER), fill_value=False)
    odd: npt.NDArray[np.bool_] = no_instants(texts) & ~np.asarray(numbers)
    return odd


def _none(texts: pa.Array) -> npt.NDArray[np.bool_]:
    return np.zeros(len(texts), np.bool_)


_CASTS: Mapping[ColumnType, Callable[[pa.Array], pa.Array]] = {
    ColumnType.INT: _trimmed(pa.int64()),
    ColumnType.FLOAT: _trimmed(pa.float64()),
    ColumnType.BOOL: _trimmed(pa.bool_()),
    ColumnType.TIMESTAMP: _instants,
}
