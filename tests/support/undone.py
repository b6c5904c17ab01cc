"""Lines of windows for the examples of property tests, in transactions that leave nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from forebay.config.specs.windows import order_of
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.rows import link_writer
from forebay.home.database.base import Database
from support.links import link


class _Undone(Exception):  # noqa: N818 - it ends a transaction, and is no error of anybody
    pass


def undone(database: Database, work: Callable[[Connection], None]) -> None:
    def and_undo(rows: Connection) -> None:
        work(rows)
        raise _Undone

    with pytest.raises(_Undone):
        database.transact(and_undo)


def newest(trained: list[Link], key: str) -> Link | None:
    return next((each for each in reversed(trained) if each.window == key), None)


def before(trained: list[Link], one: Link) -> Link | None:
    earlier = [each for each in trained if order_of(each) < order_of(one)]
    return newest(trained, max(earlier, key=order_of).window) if earlier else None


def train(rows: Connection, line: int, trained: list[Link], key: str, **more: Any) -> None:
    made = link(key, generation=1 + sum(each.window == key for each in trained), **more)
    parent = before(trained, made)
    trained.append(made.model_copy(update={"parent": parent.name if parent else None}))
    link_writer.store_link(rows, line, "ads", trained[-1])
