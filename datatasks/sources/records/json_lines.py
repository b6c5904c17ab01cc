"""Kind `json`: each line is one JSON object, a row.

Arrow reads many lines at once. Where it might not do what the definition of a JSON row says
(`formats.json_rows`), the decoder of messages reads them, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pat

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.common.rows.chunks import without_columns
from forebay.datatasks.sources.common.values.casting import Fitted
from forebay.datatasks.sources.formats.decoder import MessageLimits
from forebay.datatasks.sources.formats.json_rows import (
    DIGITS_MAX,
    JsonDecoder,
    instants,
    json_object,
)
from forebay.datatasks.sources.records.blocks import Block, one_array
from forebay.datatasks.sources.records.lines import Lines, is_utf8, seen_type

_DECODED_BYTES_MAX = 256 << 20
# No shorter line is nested too deeply for Python, has a number that is too long for it, or takes
# too much memory.
_SHORT = 900
_SURELY_DECODED = _DECODED_BYTES_MAX >> 7
_NO_NUMBERS = (b"Inf", b"NaN")
_NO_NUMBER = re.compile(rb"[:,\[]\s*[-+]?\s*(?:Inf|NaN)")


class _LineLimits(MessageLimits):
    """Those of a message, in words about a line."""

    def refusal(self, rows: int, taken: int) -> str:  # noqa: ARG002 - a line is one row
        return f"decoded it takes {taken:,} bytes or more" if taken > self.bytes else ""


class JsonLines(Lines):
    """A missing key is a null; a timestamp is ISO 8601 text, or milliseconds since 1970."""

    def prepare(self) -> None:
        limits = _LineLimits(bytes=_DECODED_BYTES_MAX)
        self._decoder = JsonDecoder(self.columns, self.declared, limits)
        self._times = {n for n in self.columns if self.declared[n] is ColumnType.TIMESTAMP}
        written_as = (pa.string(), pa.int64()) if self._times else (pa.string(),)
        self._read_as = [
            pa.schema([(f.name, time if f.name in self._times else f.type) for f in self.schema])
            for time in written_as
        ]

    def decode(self, block: Block) -> Fitted:
        batch = self._by_arrow(block) if _is_plain(block) else None
        if batch is not None:
            return Fitted(batch)
        (decoded,) = self._decoder.decode(block.values())
        batch = self.spread(decoded.batch, decoded.messages, len(block))
        return Fitted(batch, decoded.bad_messages)

    def stored_schema(self, values: Sequence[bytes]) -> pa.Schema:
        """Each key alone: what is odd about others matters to no reader."""
        seen: dict[str, list[Any]] = {}
        for line in values:
            for name, value in json_object(line).items():
                seen.setdefault(name, []).append(value)
        return pa.schema([(name, _type_of(each)) for name, each in seen.items()])

    def _by_arrow(self, block: Block) -> pa.RecordBatch | None:
        for schema in self._read_as:
            try:
                table = _read(
                    block,
                    pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
                )
            except pa.ArrowException:
                continue
            if schema is not self._read_as[0]:
                self._read_as.reverse()  # the next block's times are written alike
            return self._converted(table) if table.num_rows == len(block) else None
        return None

    def _converted(self, table: pa.Table) -> pa.RecordBatch | None:
        if not self.columns:
            return without_columns(table.num_rows)
        columns = [one_array(table[name]) for name in self.columns]
        is_time = [name in self._times for name in self.columns]
        try:
            arrays = [instants(c) if t else c for c, t in zip(columns, is_time, strict=True)]
        except pa.ArrowException:
            return None
        if not all(map(_is_finite, arrays)):
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _type_of(values: list[Any]) -> pa.DataType:
    """Of JSON values; where no type holds all of them, of the first one that has some."""
    for some in (values, *([each] for each in values)):
        try:
            return seen_type(pa.array(some))
        except (ValueError, TypeError, OverflowError):
            continue
    return pa.null()


def _read(block: Block, options: pj.ParseOptions) -> pa.Table:
    data = block.data[int(block.starts[0]) :]
    whole = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    return pj.read_json(pa.BufferReader(data), whole, options)


def _is_finite(array: pa.Array) -> bool:
    """Whether no float is beyond all floats: of those the definition refuses some."""
    values = array.flatten() if pat.is_list(array.type) else array
    return not pat.is_floating(values.type) or pc.all(pc.is_finite(values)).as_py() is not False


def _is_plain(block: Block) -> bool:
    """Whether Arrow accepts no line that the definition refuses, nor takes two for one.

    With `{` first and `}` last in each line no object goes on in the next one: a comma or an end
    would have to be between them.
    """
    data, lengths = block.data, block.ends - block.starts
    codes = np.frombuffer(data, np.uint8)
    if (codes[block.starts] != ord("{")).any() or (codes[block.ends - 1] != ord("}")).any():
        return False
    if b"\0" in data or not is_utf8(data):
        return False
    odd = any(word[:1] in data and word in data for word in _NO_NUMBERS)  # one byte is found faster
    if odd and _NO_NUMBER.search(data):
        return False
    longest = int(lengths.max())
    if longest < _SHORT:
        return True
    return longest < _SURELY_DECODED and not _is_odd(codes, longest)


def _is_odd(codes: npt.NDArray[np.uint8], longest: int) -> bool:
    """Whether a line of that length could be nested too deeply, or have too many digits."""
    opens = np.flatnonzero((codes | 0x20) == ord("{"))
    if (opens[_SHORT - 1 :] - opens[: 1 - _SHORT] < longest).any():
        return True
    if longest <= DIGITS_MAX:
        return False
    others = np.flatnonzero((codes < ord("0")) | (codes > ord("9")))
    return bool((np.diff(others, prepend=-1, append=len(codes)) > DIGITS_MAX).any())
