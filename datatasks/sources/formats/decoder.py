"""The contract of a message format: from the bytes of many messages to one batch of rows.

A decoder never fails as a whole: what cannot be read is named, the rest is decoded. The outcome
for one message does not depend on the messages that it is decoded with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.sources import ColumnType
from forebay.datatasks.sources.common.base import ARROW_TYPES

REASON_MAX = 200


@dataclass
class Decoded:
    """Rows of several messages.

    batch: the asked columns, the rows of bad rows included (they hold nulls).
    messages: int64[N], which message each row came from; ascending.
    rows: int64[N], the row's number inside its message.
    bad_messages: message to reason: nothing of it could be read.
    bad_rows: index in `batch` to reason.
    """

    batch: pa.RecordBatch
    messages: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    bad_messages: dict[int, str] = field(default_factory=dict)
    bad_rows: dict[int, str] = field(default_factory=dict)


class Decoder(ABC):
    """One format, for a fixed choice of columns."""

    one_row: ClassVar[bool]  # each message is one row, so that offsets count rows

    def __init__(self, columns: Sequence[str], declared: Mapping[str, ColumnType]) -> None:
        """Decode `columns`, whose types are in `declared`."""
        self.columns = list(columns)
        self.declared = declared
        self.schema = pa.schema([(name, ARROW_TYPES[declared[name]]) for name in columns])

    @abstractmethod
    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Decode messages; None stands for a message without a value (a tombstone)."""

    @abstractmethod
    def described(self, value: bytes) -> dict[str, str]:
        """Every column of one message and its type, as people write it; empty when unreadable."""
