"""A column of each type, and rows of them, for every format of messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from forebay.config.specs.sources import ColumnType

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
