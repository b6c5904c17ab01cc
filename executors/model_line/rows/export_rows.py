"""Models of windows that had not ended: stored as they are published, a few kept for a rollback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from forebay.executors.model_line.link import InnerExport, ServedModel
from forebay.executors.model_line.rows.file_rows import stored_in
from forebay.home.database.tables import exports, served, windows
from forebay.home.store.garbage import require_unburied
from forebay.system.instants import from_us, to_us

# The newest of a line, beside the one that serves.
KEPT = 3
_SERVES = (
    select(served.c.line_id)
    .where(served.c.line_id == exports.c.line_id, served.c.window_id == exports.c.window_id)
    .where(served.c.generation == exports.c.generation, served.c.step == exports.c.step)
    .exists()
)
_OF_LINE = exports.c.line_id == bindparam("line")
_EXPORTS = (
    select(exports, windows.c.key, windows.c.starts_at, windows.c.ends_at)
    .add_columns(_SERVES.label("serves"))
    .join(windows, windows.c.id == exports.c.window_id)
    .where(_OF_LINE)
    .order_by(exports.c.exported_at, exports.c.step)
)
_MODEL = (
    select(exports.c.window_id, exports.c.generation, exports.c.step)
    .add_columns(exports.c.name, exports.c.checksum, exports.c.size_bytes)
    .join(windows, windows.c.id == exports.c.window_id)
    .where(_OF_LINE, windows.c.key == bindparam("window"))
    .where(exports.c.generation == bindparam("of_generation"))
    .where(exports.c.step == bindparam("of_step"))
)


def store(connection: Connection, line: int, of_window: int, export: InnerExport) -> None:
    """Store one, in place of another of the same step.

    Raises:
        InfrastructureError: when it was already collected as garbage.
    """
    require_unburied(connection, [export.stored.name])
    _forget(connection, line, of_window, export)
    newest_at = None if export.newest_at is None else to_us(export.newest_at)
    values = {"line_id": line, "window_id": of_window, "newest_at": newest_at}
    values |= {"generation": export.generation, "step": export.step}
    values |= {"exported_at": to_us(export.exported_at), **export.stored.model_dump()}
    connection.execute(insert(exports).values(values))


def of_line(connection: Connection, line: int | None) -> list[InnerExport]:
    """The oldest first."""
    return [_export(row) for row in connection.execute(_EXPORTS, {"line": line})]


def model_of(connection: Connection, line: int, name: ServedModel) -> dict[str, Any] | None:
    """The columns of `served` that say which model it is; None where it is not kept."""
    asked = {"line": line, "window": name.window}
    asked |= {"of_generation": name.generation, "of_step": name.step}
    found = connection.execute(_MODEL, asked).mappings().one_or_none()
    return None if found is None else dict(found)


def forget_old(connection: Connection, line: int) -> list[str]:
    """Forget what is neither new nor serves; returns names that nothing refers to any more."""
    rows = connection.execute(_EXPORTS, {"line": line}).all()
    return _forget_rows(connection, [row for row in rows[:-KEPT] if not row.serves])


def forget(connection: Connection, line: int, gone: Sequence[InnerExport]) -> list[str]:
    """Forget these, except the one that serves; returns as `forget_old`."""
    names = {each.stored.name for each in gone}
    rows = connection.execute(_EXPORTS, {"line": line}).all()
    return _forget_rows(connection, [r for r in rows if r.name in names and not r.serves])


def forget_all(connection: Connection, line: int) -> None:
    connection.execute(delete(exports).where(exports.c.line_id == line))


def _forget_rows(connection: Connection, rows: Sequence[Row[Any]]) -> list[str]:
    for row in rows:
        _forget(connection, row.line_id, row.window_id, row)
    return [row.name for row in rows]


def _forget(connection: Connection, line: int, of_window: int, one: InnerExport | Row[Any]) -> None:
    of_one = (exports.c.line_id == line) & (exports.c.window_id == of_window)
    of_step = (exports.c.generation == one.generation) & (exports.c.step == one.step)
    connection.execute(delete(exports).where(of_one, of_step))


def _export(row: Row[Any]) -> InnerExport:
    return InnerExport(
        window=row.key,
        generation=row.generation,
        step=row.step,
        start=from_us(row.starts_at),
        end=from_us(row.ends_at),
        newest_at=None if row.newest_at is None else from_us(row.newest_at),
        exported_at=from_us(row.exported_at),
        stored=stored_in(row),
    )
