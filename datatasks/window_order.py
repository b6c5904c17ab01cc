"""The order of windows in a database: by their ends, then by their starts; never by their keys.

Both at once are compared as a row of two values: an index is used for that, and not for the same
comparison in parts.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam, tuple_

from forebay.config.windows import Spanned
from forebay.home.tables import windows
from forebay.system.instants import to_us

IN_ORDER = (windows.c.ends_at, windows.c.starts_at)
_PLACE = tuple_(*IN_ORDER)
_ONE = tuple_(bindparam("end"), bindparam("start"))
# Windows before one and after it, for statements that are made once; `span` has their parameters.
BEFORE = _PLACE < _ONE
AFTER = _PLACE > _ONE


def span(one: Spanned) -> dict[str, int]:
    """A window as `BEFORE` and the like ask for it."""
    return {"end": to_us(one.end), "start": to_us(one.start)}


def comes_before(one: Spanned) -> ColumnElement[bool]:
    """Windows that come before this one."""
    return tuple_(to_us(one.end), to_us(one.start)) > _PLACE


def comes_after(one: Spanned) -> ColumnElement[bool]:
    """Windows that come after this one."""
    return tuple_(to_us(one.end), to_us(one.start)) < _PLACE
