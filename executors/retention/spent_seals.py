"""Seals in the store of windows that were planned again and that no job still trains.

The link of a window removes its seal, and so does `forebay forget`: only these are left over.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row

from forebay.executors.model_line.rows.file_rows import all_seals, forget_seal
from forebay.executors.retention.training_folders import is_spent
from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.home.store import store_of


def spent_seals(connection: Connection) -> list[Row[Any]]:
    """Their rows; see `all_seals`."""
    return [
        seal
        for seal in all_seals(connection)
        if is_spent(connection, seal.pipeline, seal.line, seal.key, seal.generation)
    ]


def remove_spent_seals(home: Home) -> list[Row[Any]]:
    """Forget them, then remove their bytes.

    Raises:
        InfrastructureError: when database or store fail.
    """

    def work(rows: Connection) -> list[Row[Any]]:
        found = spent_seals(rows)
        for seal in found:
            forget_seal(rows, seal.line_id, seal.window_id)
        return found

    database = database_of(home)
    if not database.read(spent_seals):
        return []  # without a write transaction, for which others would wait
    gone = database.transact(work)
    store_of(home).remove([seal.name for seal in gone])
    return gone
