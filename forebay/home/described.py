"""Describes a row for people: the pipeline, line, window and so on that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, Select, Table, select

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
    for name in _NAMING:
        label = "window" if name == "key" else name
        found = [each.c[name] for each in tables if name in each.c]
        if found:
            named.setdefault(label, found[0])
    columns = [column.label(label) for label, column in named.items()]
    return select(*columns).select_from(joined).where(*conditions)


def subject_text(subject: Subject) -> str:
    """Such as `pipeline ads, window 2026-03-01, stream clicks`."""
    return ", ".join(f"{name.removesuffix('_id')} {value}" for name, value in subject.items())


def _parents(table: Table, seen: list[Table]) -> Iterator[tuple[ColumnElement[bool], Table]]:
    """The tables that a row must refer to, and how to join each."""
    for key in sorted(table.foreign_keys, key=lambda key: key.parent.name):
        parent = key.column.table
        if key.parent.nullable or not isinstance(parent, Table) or parent in seen:
            continue
        seen.append(parent)
        yield key.parent == key.column, parent
        yield from _parents(parent, seen)
