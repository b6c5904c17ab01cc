"""The order of windows in a database: by their ends, then by their starts; never by their keys."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, or_

from forebay.config.windows import Spanned
from forebay.home.tables import windows
from forebay.system.instants import to_us

IN_ORDER = (windows.c.ends_at, windows.c.starts_at)


def comes_before(one: Spanned) -> ColumnElement[bool]:
    """Windows that come before this one."""
    end, start = to_us(one.end), to_us(one.start)
    return or_(windows.c.ends_at < end, and_(windows.c.ends_at == end, windows.c.starts_at < start))


def comes_after(one: Spanned) -> ColumnElement[bool]:
    """Windows that come after this one."""
    end, start = to_us(one.end), to_us(one.start)
    return or_(windows.c.ends_at > end, and_(windows.c.ends_at == end, windows.c.starts_at > start))
