"""Checks a home: reads what its rows name from the store, and compares rows with each other.

Reads page by page while jobs run: what is removed meanwhile is not a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    RowMapping,
    Select,
    Table,
    exists,
    func,
    or_,
    select,
    tuple_,
)

from forebay.errors import DataError
from forebay.home.database.open import database_of
from forebay.home.database.tables import METADATA, STORED, link_rows, links
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of

_parent_rows = link_rows.alias("parent_rows")
# The model's own row sums, from window to window: the proof that none is lost and none twice.
_BROKEN = "starts from other rows than its parent model had seen"


def _begins_elsewhere() -> ColumnElement[bool]:
    sums = ("rows", "sum", "sum_of_squares")
    return exists(
        select(_parent_rows.c.link_id)
        .where(_parent_rows.c.link_id == links.c.parent_id)
        .where(_parent_rows.c.source == link_rows.c.source)
        .where(or_(*(_parent_rows.c[f"seen_{x}"] != link_rows.c[f"base_{x}"] for x in sums)))
    )


# In the order of the text. In the table of windows, the column is called `key`.
_NAMING = ("pipeline", "line", "key", "window", "generation", "stream", "source", "kind", "job_id")
Subject = Mapping[str, Any]


def described(table: Table, *conditions: ColumnElement[bool]) -> Select[Any]:
    """The columns that name the rows of a table that meet all conditions.

    A condition may use columns of the tables that the rows refer to: each is joined once.
    """
    joined: FromClause = table
    tables = [table]
    for key, parent in _parents(table, tables):
        joined = joined.join(parent, key)
    named: dict[str, Column[Any]] = {}
    for name, each in product(_NAMING, tables):
        if name in each.c:
            named.setdefault("window" if name == "key" else name, each.c[name])
    columns = [column.label(label) for label, column in named.items()]
    return select(*columns).select_from(joined).where(*conditions)


def _parents(table: Table, seen: list[Table]) -> Iterator[tuple[ColumnElement[bool], Table]]:
    """The tables that a row must refer to, and how to join each."""
    for key in sorted(table.foreign_keys, key=lambda key: key.parent.name):
        parent = key.column.table
        if key.parent.nullable or not isinstance(parent, Table) or parent in seen:
            continue
        seen.append(parent)
        yield key.parent == key.column, parent
        yield from _parents(parent, seen)


# Rows per read. Also the most wrong rows of one kind that are reported.
_PAGE_ROWS = 500
_RESTORE = "Restore the database from a backup"
# Prefix of the columns that identify a row. No column that describes a row begins with it.
_OWN = "own_"


class Fault(NamedTuple):
    """Something that is wrong, and what to do. table: of the row. subject: what it belongs to."""

    table: str
    subject: Subject
    problem: str

    def __str__(self) -> str:
        # Such as `pipeline ads, window 2026-03-01, stream clicks`.
        named = (f"{name.removesuffix('_id')} {value}" for name, value in self.subject.items())
        return ": ".join(filter(None, (self.table, ", ".join(named), self.problem)))


@dataclass
class HomeCheck:
    """rows: how many there are, by table. read_bytes: how many were read from the store."""

    home: Home
    rows: Counter[str] = field(default_factory=Counter)
    read_bytes: int = 0

    def faults(self) -> Iterator[Fault]:
        """Everything that is wrong, as it is found.

        Raises:
            InfrastructureError: when the store or the database cannot be read.
        """
        database = database_of(self.home)
        self.rows.update(database.read(_counts))
        for problem in database.read(_damages):
            yield Fault("database", {}, f"{problem}. {_RESTORE}")
        broken = described(link_rows, _begins_elsewhere()).limit(_PAGE_ROWS)
        for row in database.read(partial(_all, broken)):
            yield Fault(link_rows.name, dict(row), f"{_BROKEN}. {_RESTORE}")
        for table in STORED:
            yield from self._stored_faults(table)

    def _stored_faults(self, table: Table) -> Iterator[Fault]:
        """What the rows of a table name but the store does not hold as it was stored.

        Rows are read by name, so bytes that several of them name are read once.
        """
        verified: Stored | None = None
        problem = ""
        # The name first, then what tells the rows of a name apart, then what is expected there.
        first, rest = table.c.name, (table.c.checksum, table.c.size_bytes)
        columns = list(dict.fromkeys([first, *table.primary_key.columns, *rest]))
        for row in self._rows(table, columns):
            own = {column.name: row[_OWN + column.name] for column in columns}
            stored = Stored(**{name: own[name] for name in Stored.model_fields})
            if stored != verified:
                verified, problem = stored, self._problem(stored)
            if problem and self._is_still_there(table, own):
                subject = {name: row[name] for name in row if not name.startswith(_OWN)}
                yield Fault(table.name, subject, problem)

    def _rows(self, table: Table, own: Sequence[Column[Any]]) -> Iterator[RowMapping]:
        """All rows, with `own` columns; sorted by them, which are unique together."""
        named = (each.label(_OWN + each.name) for each in own)
        rows = described(table).add_columns(*named).order_by(*own).limit(_PAGE_ROWS)
        page = rows
        while found := database_of(self.home).read(partial(_all, page)):
            yield from found
            last = found[-1]
            page = rows.where(tuple_(*own) > tuple_(*(last[_OWN + each.name] for each in own)))

    def _problem(self, stored: Stored) -> str:
        try:
            store_of(self.home).verify(stored)
        except DataError as error:
            return str(error)
        self.read_bytes += stored.size_bytes
        return ""

    def _is_still_there(self, table: Table, own: dict[str, Any]) -> bool:
        """Whether a row still names these bytes: rows are removed before the bytes are."""
        same = (table.c[name] == value for name, value in own.items())
        wanted = select(table.c.name).where(*same)
        return bool(database_of(self.home).read(partial(_all, wanted)))


def _all(wanted: Select[Any], rows: Connection) -> Sequence[RowMapping]:
    return rows.execute(wanted).mappings().all()


def _counts(rows: Connection) -> dict[str, int]:
    return {
        table.name: rows.scalar(select(func.count()).select_from(table)) or 0
        for table in METADATA.sorted_tables
    }


def _damages(rows: Connection) -> list[str]:
    """What SQLite reports about its own file; PostgreSQL checks its own."""
    if rows.dialect.name != "sqlite":
        return []
    found = [text for (text,) in rows.exec_driver_sql("PRAGMA integrity_check") if text != "ok"]
    for table, row, parent, _ in rows.exec_driver_sql("PRAGMA foreign_key_check"):
        found.append(f"row {row} of {table} refers to a row of {parent} that does not exist")
    return found
