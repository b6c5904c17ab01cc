"""The contract of a message format: from the bytes of many messages to batches of rows.

A decoder never fails as a whole: what cannot be read is named, the rest is decoded. The outcome
for one message does not depend on the messages that it is decoded with, and what is in memory at a
time is bounded by the limits of one message, however many there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES
from forebay.datatasks.sources.common.contract.option_types import (
    MESSAGE_BYTES_MAX,
    MESSAGE_ROWS_MAX,
)

REASON_MAX = 200
NO_VALUE = "the message has no value"
OUT_OF_MEMORY = "there is not enough memory to decode it"
_Made = TypeVar("_Made")


class MessageLimits(NamedTuple):
    """The most rows of one message, and the most bytes of it: as stored, and decoded."""

    rows: int = MESSAGE_ROWS_MAX
    bytes: int = MESSAGE_BYTES_MAX

    def refusal(self, rows: int, taken: int) -> str:
        """Why a message of this size is not decoded; empty for one within the limits."""
        if rows > self.rows:
            return f"it has {rows:,} rows, and message_rows_max is {self.rows:,}"
        if taken > self.bytes:
            return f"decoded it takes {taken:,} bytes, and message_bytes_max is {self.bytes:,}"
        return ""

    def stored_refusal(self, size: int) -> str:
        if size > self.bytes:
            return f"it has {size:,} bytes, and message_bytes_max is {self.bytes:,}"
        return ""


USUAL_LIMITS = MessageLimits()


@dataclass(frozen=True)
class Written:
    """What the messages of a source are written in.

    files: schema id to file; one under None where messages are not framed.
    message_type: full name of the message type in each of these files; empty for Avro.
    """

    files: Mapping[int | None, Path]
    message_type: str = ""

    @property
    def is_framed(self) -> bool:
        """Whether messages begin with the id of their schema."""
        return None not in self.files


@dataclass
class Decoded:
    """Rows of neighbouring messages.

    batch: the asked columns, the rows of bad rows included (they hold nulls).
    messages: int64[N], which message each row came from; ascending.
    rows: int64[N], the row's number inside its message.
    end: message and row after all of it: where the next ones begin.
    bad_messages: message to reason: nothing of it could be read.
    bad_rows: index in `batch` to reason.
    """

    batch: pa.RecordBatch
    messages: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    end: tuple[int, int]
    bad_messages: dict[int, str] = field(default_factory=dict)
    bad_rows: dict[int, str] = field(default_factory=dict)


class Decoder(ABC):
    """One format, for a fixed choice of columns."""

    one_row: ClassVar[bool]  # each message is one row, so that offsets count rows

    def __init__(
        self,
        columns: Sequence[str],
        declared: Mapping[str, ColumnType],
        limits: MessageLimits = USUAL_LIMITS,
        written: Written | None = None,
    ) -> None:
        """ConfigError where that cannot be decoded. written: for a format that has schemas."""
        self.columns = list(columns)
        self.declared = declared
        self.limits = limits
        self.written = written or Written({})
        self.schema = pa.schema([(name, ARROW_TYPES[declared[name]]) for name in columns])
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make what `decode` needs, once everything above is known."""

    @abstractmethod
    def decode(self, values: Sequence[bytes | None]) -> Iterator[Decoded]:
        """Decode messages, in one piece or, where they take much, in several.

        The last piece ends after the last message. None stands for a message without a value (a
        tombstone).
        """

    @abstractmethod
    def described(self, value: bytes) -> dict[str, str]:
        """Every column of one message and its type, as people write it; empty when unreadable."""


def in_memory(
    make: Callable[[dict[int, Any], dict[int, str]], _Made],
    rows: dict[int, Any],
    bad: dict[int, str],
) -> _Made:
    """What is made of the rows of messages. Those that memory does not even hold alone are bad."""
    try:
        return make(rows, bad)
    except MemoryError:
        for number in list(rows):
            try:
                make({number: rows[number]}, {})
            except MemoryError:
                bad[number] = OUT_OF_MEMORY
                del rows[number]
    return make(rows, bad)
