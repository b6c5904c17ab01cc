"""The order of windows in a database: by their ends, then by their starts; never by their keys.

Both at once are compared as a row of two values: an index is used for that, and not for the same
comparison in parts.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Tuple, bindparam, tuple_

from forebay.config.specs.windows import Spanned
from forebay.home.database.tables import windows
from forebay.system.instants import to_us


def place(of: FromClause = windows) -> Tuple:
    """Where windows are in the order, to be compared with another place."""
    return tuple_(of.c.ends_at, of.c.starts_at)


def in_order(of: FromClause = windows) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    return of.c.ends_at, of.c.starts_at


IN_ORDER = in_order()
ONE = tuple_(bindparam("end"), bindparam("start"))
# Windows before one, for statements that are made once; `span` has their parameters.
BEFORE = place() < ONE


def span(one: Spanned) -> dict[str, int]:
    """A window as `BEFORE` and the like ask for it."""
    return {"end": to_us(one.end), "start": to_us(one.start)}
