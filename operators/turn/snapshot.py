"""A cheap look at what is stored of a model line: may a window's turn have come?"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Self

from sqlalchemy import Connection

from forebay.executors.model_line.lease import held_lines
from forebay.executors.model_line.rows import line_rows
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.operators.runs.run_failures import last_failures
from forebay.system.message import Message


class Turn(NamedTuple):
    """What is waited for: the turn of the window after `before`, in a run of a DAG."""

    dag_id: str
    pipeline: str
    line: str
    before: str


class TurnSnapshot(Message):
    """A quick look for waiting tasks: a change here makes it worth deciding again.

    held: whether a job is training the line. links: generations in which the previous window is
    trained. failed_at: when a run of the DAG last failed, as given by `time.time`; 0 if none did.
    """

    held: bool
    links: list[int]
    failed_at: float

    @classmethod
    def take(cls, home: Home, dag_id: str, pipeline: str, line: str, before: str) -> Self:
        """Look now, for the window that comes after `before`."""
        turn = Turn(dag_id, pipeline, line, before)
        return database_of(home).read(lambda rows: cls.take_all(rows, home, [turn]))[turn]

    @classmethod
    def take_all(
        cls, connection: Connection, home: Home, turns: Collection[Turn]
    ) -> dict[Turn, Self]:
        held = held_lines(connection, home, {(turn.pipeline, turn.line) for turn in turns})
        links = line_rows.generations(connection, {(turn.pipeline, turn.before) for turn in turns})
        failed = last_failures(connection, {turn.dag_id for turn in turns})
        return {
            turn: cls(
                held=(turn.pipeline, turn.line) in held,
                links=links.get((turn.pipeline, turn.line, turn.before), []),
                failed_at=failed.get(turn.dag_id, 0) / 1_000_000,
            )
            for turn in turns
        }
