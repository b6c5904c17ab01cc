"""A column of each type, rows of them for every format of messages, and small ones decoded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats.decoder import Decoded, Decoder

COLUMNS = {
    "i": ColumnType.INT,
    "f": ColumnType.FLOAT,
    "s": ColumnType.STRING,
    "b": ColumnType.BOOL,
    "t": ColumnType.TIMESTAMP,
    "ls": ColumnType.LIST_STRING,
    "li": ColumnType.LIST_INT,
    "lf": ColumnType.LIST_FLOAT,
}
AT = datetime(2013, 6, 1, 7, 30, 0, 123456, tzinfo=UTC)
ROW: dict[str, Any] = {
    "i": -(2**63),
    "f": 2.5,
    "s": "wörd\n",
    "b": True,
    "t": AT,
    "ls": ["a", None],
    "li": [1, None],
    "lf": [0.5, 1.0],
}
NOTHING = dict.fromkeys(COLUMNS)


def decode(reader: Decoder, values: list[bytes | None]) -> Decoded:
    """All of it; messages as small as these come in one piece."""
    (decoded,) = reader.decode(values)
    assert decoded.end == (len(values), 0)
    return decoded
