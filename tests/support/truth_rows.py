"""What the database of a home contains, read without any of Forebay's code."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extras import DictCursor

Json = dict[str, Any]
_LINKS = """
    SELECT links.id, own.key AS window, links.generation, links.started_at, links.finished_at,
           links.steps, links.resumed_from_step, links.reread_rows,
           origin.key AS parent_window, parents.generation AS parent_generation
    FROM links JOIN windows AS own ON own.id = links.window_id
    JOIN lines ON lines.id = links.line_id
    LEFT JOIN links AS parents ON parents.id = links.parent_id
    LEFT JOIN windows AS origin ON origin.id = parents.window_id
    WHERE lines.pipeline = ? AND lines.line = 'main' AND own.key = ?
    ORDER BY links.generation
"""
_PLAIN = (
    "window", "generation", "started_at", "finished_at", "steps", "resumed_from_step",
    "reread_rows",
)  # fmt: skip
_SUMS = "SELECT * FROM link_rows WHERE link_id = ? ORDER BY position"
_PLAN = """
    SELECT document FROM plans JOIN windows ON windows.id = plans.window_id
    WHERE pipeline = ? AND key = ? AND generation = ?
"""
_SERVED = """
    SELECT windows.key, served.generation, served.name FROM served
    JOIN windows ON windows.id = served.window_id JOIN lines ON lines.id = served.line_id
    WHERE lines.pipeline = ? AND lines.line = 'main'
"""
_STORED = """
    SELECT link_files.name FROM link_files JOIN links ON links.id = link_files.link_id
    JOIN windows ON windows.id = links.window_id JOIN lines ON lines.id = links.line_id
    WHERE lines.pipeline = ? AND lines.line = 'main' AND windows.key = ? AND link_files.kind = ?
    ORDER BY links.generation
"""


def rows_of(home: Path, statement: str, *values: object) -> Sequence[Any]:
    """The answer of a home's SQLite, or of the server that FOREBAY_DATABASE names; `?` for values.

    Each row has its columns by position and by name.
    """
    address = os.environ.get("FOREBAY_DATABASE")
    if address:
        place = {"options": "-c search_path=forebay", "cursor_factory": DictCursor}
        with closing(psycopg2.connect(address, **place)) as server, server.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s"), values)
            return cursor.fetchall()
    with sqlite3.connect(f"file:{home / 'forebay.db'}?mode=ro", uri=True) as database:
        database.row_factory = sqlite3.Row
        return database.execute(statement, values).fetchall()


def links_of(home: Path, pipeline: str, window: str) -> list[Json]:
    """All links of a window, the newest generation last; instants in microseconds."""
    return [_link(home, row) for row in rows_of(home, _LINKS, pipeline, window)]


def trained_rows(home: Path, pipeline: str, window: str, generation: int) -> int:
    """Rows that a window's link holds; 0 before it has one."""
    if not _has_tables(home):
        return 0
    found = [each for each in links_of(home, pipeline, window) if each["generation"] == generation]
    return sum(
        each["seen"][name]["rows"] - each["base_seen"][name]["rows"]
        for each in found
        for name in each["seen"]
    )


def plan_of(home: Path, pipeline: str, window: str, generation: int) -> str:
    ((document,),) = rows_of(home, _PLAN, pipeline, window, generation)
    return str(document)


def served_of(home: Path, pipeline: str) -> tuple[str, int, Path]:
    ((window, generation, name),) = rows_of(home, _SERVED, pipeline)
    return window, generation, _place(home, name)


def serves(home: Path, pipeline: str) -> bool:
    return _has_tables(home) and bool(rows_of(home, _SERVED, pipeline))


def stored_of(home: Path, pipeline: str, window: str, kind: str) -> Path | None:
    """Where the store has this of a window's newest link; None where it has nothing."""
    found = rows_of(home, _STORED, pipeline, window, kind)
    if not found:
        return None
    return _place(home, found[-1]["name"])


def _has_tables(home: Path) -> bool:
    if os.environ.get("FOREBAY_DATABASE"):
        return bool(rows_of(home, "SELECT to_regclass('served')")[0][0])
    if not (home / "forebay.db").exists():
        return False
    return bool(rows_of(home, "SELECT 1 FROM sqlite_master WHERE name = 'served'"))


def _link(home: Path, row: Mapping[str, Any]) -> Json:
    sums = rows_of(home, _SUMS, row["id"])
    parent = {"window": row["parent_window"], "generation": row["parent_generation"]}
    return {
        **{name: row[name] for name in _PLAIN},
        "parent": parent if row["parent_window"] is not None else None,
        "base_seen": {each["source"]: _figures(each, "base") for each in sums},
        "seen": {each["source"]: _figures(each, "seen") for each in sums},
    }


def _figures(row: Mapping[str, Any], when: str) -> Json:
    return {name: row[f"{when}_{name}"] for name in ("rows", "sum", "sum_of_squares")}


def _place(home: Path, name: str) -> Path:
    path = home / "store" / name
    return path / "content" if path.suffix == ".tree" else path
