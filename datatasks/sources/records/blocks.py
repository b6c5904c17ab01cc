"""Records of files before they are decoded: where each begins and ends, some at a time."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from forebay.config.specs.base import Spec
from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES
from forebay.datatasks.sources.common.rows.chunks import without_columns
from forebay.datatasks.sources.common.values.casting import Fitted, castable

RECORD_BYTES_MAX = 16 << 20
_BEGINNING = 2000
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Neighbouring records of a file.

    data: bytes that hold them. starts, ends: where each one is there. first: how many records come
    before them. places: for people, the line or record that each one is, counted from 1.
    bad: records (index in the block) that are not to be decoded, and why.
    is_rest: whether its one record stands for all that is left of a damaged file.
    """

    data: bytes
    starts: Ints
    ends: Ints
    first: int
    places: Ints
    bad: Mapping[int, str] = field(default_factory=dict)
    is_rest: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def end(self) -> int:
        """How many records come before those after this block."""
        return self.first + len(self)

    def part(self, low: int, high: int) -> Block:
        """Records [low, high) of the block, at least one."""
        start = int(self.starts[low])
        return Block(
            self.data[start : int(self.ends[high - 1])],
            self.starts[low:high] - start,
            self.ends[low:high] - start,
            self.first + low,
            self.places[low:high],
            {index - low: why for index, why in self.bad.items() if low <= index < high},
        )

    def only(self, rows: Ints) -> Block:
        """Some records of the block, as lines if they are some, and none of them bad."""
        values, lengths = self.values(), (self.ends - self.starts)[rows]
        ends = np.cumsum(lengths + 1) - 1
        data = b"\n".join([values[row] for row in rows.tolist()])
        return Block(data, ends - lengths, ends, self.first, self.places[rows])

    def values(self) -> list[bytes]:
        each = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.data[start:end] for start, end in each]

    def beginning(self, index: int) -> bytes:
        """Of one record, for people."""
        start = int(self.starts[index])
        return self.data[start : min(int(self.ends[index]), start + _BEGINNING)]


def bad_record(first: int, place: int, reason: str, *, is_rest: bool = False) -> Block:
    """A record that is not to be decoded, of which nothing is kept."""
    zero = np.zeros(1, np.int64)
    return Block(b"", zero, zero, first, zero + place, {0: reason}, is_rest)


def lost_rest(first: int, place: int, error: object) -> Block:
    """What stands for the rest of a damaged file, of which nobody can tell how many records."""
    reason = f"it and all after it cannot be read: {error}"
    return bad_record(first, place, reason, is_rest=True)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Unlike `combine_chunks`, not copied where it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def too_long(size: int) -> str:
    return f"it has {size:,} bytes or more, and at most {RECORD_BYTES_MAX:,} are read"


class Records(ABC):
    """One file of records, and some declared columns of them.

    What cannot be read is named, and the rest is decoded: the outcome for one record does not
    depend on the records that it is decoded with.

    place: what `Block.places` counts.
    """

    place: str

    def __init__(
        self, columns: Sequence[str], declared: Mapping[str, ColumnType], options: Spec
    ) -> None:
        self.declared, self.options = declared, options
        self._want(columns)

    def _want(self, columns: Sequence[str]) -> None:
        self.columns = list(columns)
        self.schema = pa.schema([(name, ARROW_TYPES[self.declared[name]]) for name in columns])
        self.prepare()

    def of(self, columns: Sequence[str]) -> Records:
        """The same file for other columns: only to decode the blocks that this one has cut."""
        other = copy.copy(self)
        other._want(columns)  # noqa: SLF001 - of its own class
        return other

    @abstractmethod
    def prepare(self) -> None:
        """Make what reading needs, once the columns are known."""

    @abstractmethod
    def blocks(self, pieces: Iterator[bytes]) -> Iterator[Block]:
        """Cut a file into records. Where it is damaged, the last one is bad and says so.

        Raises:
            DataError: when the file says that it has not all of the columns.
        """

    @abstractmethod
    def decode(self, block: Block) -> Fitted:
        """The rows of a block in which no record is bad yet."""

    @abstractmethod
    def stored_schema(self, values: Sequence[bytes]) -> pa.Schema:
        """What good records hold, as far as they say it."""

    @staticmethod
    def fits(stored: pa.DataType, declared: ColumnType) -> bool:
        """Whether values of a type of `stored_schema` can be read as declared."""
        is_text_too = declared is ColumnType.STRING and pat.is_temporal(stored)
        is_number_too = declared is ColumnType.TIMESTAMP and pat.is_integer(stored)
        return is_text_too or is_number_too or castable(stored, declared)

    def decode_all(self, block: Block) -> Fitted:
        """The rows of a block. Bad ones hold nulls, and say why they are bad."""
        if not block.bad:
            return self.decode(block)
        good = np.setdiff1d(np.arange(len(block)), np.fromiter(block.bad, np.int64))
        fitted = self.decode(block.only(good)) if len(good) else Fitted(self.nothing())
        bad = {int(good[row]): reason for row, reason in fitted.bad.items()}
        return Fitted(self.spread(fitted.batch, good, len(block)), dict(block.bad) | bad)

    def nothing(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self.schema)

    def spread(self, batch: pa.RecordBatch, places: Ints, count: int) -> pa.RecordBatch:
        """Rows at their places among `count` rows, the others null."""
        if not self.columns:
            return without_columns(count)
        if len(places) == count:
            return batch
        rows = np.full(count, -1, np.int64)
        rows[places] = np.arange(len(places))
        return batch.take(pa.array(rows, mask=rows < 0))
