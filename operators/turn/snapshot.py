"""A cheap look at what is stored of a model line: may a window's turn have come?"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Self

from sqlalchemy import Connection

from forebay.executors.model_line.lease import held_lines
from forebay.executors.model_line.rows import line_rows
from forebay.home.database.open import database_of
from forebay.home.job_id import window_job_id
from forebay.home.paths import Home
from forebay.operators.runs.run_failures import last_failures
from forebay.system.message import Message


class Turn(NamedTuple):
    """What is waited for: the turn of the window after `before`, in a run of a DAG.

    further: the window before that one.
    """

    dag_id: str
    pipeline: str
    line: str
    before: str
    further: str = ""


class TurnSnapshot(Message):
    """A quick look for waiting tasks: a change here makes it worth deciding again.

    held: whether a job is training the line. is_near: whether it trains the previous window. links:
    generations in which the previous window is trained. further: the same of the window before
    that. failed_at: when a run of the DAG last failed, as given by `time.time`; 0 if none did.
    """

    held: bool
    is_near: bool
    links: list[int]
    further: list[int]
    failed_at: float

    @classmethod
    def take(cls, home: Home, turn: Turn) -> Self:
        """Look now."""
        return database_of(home).read(lambda rows: cls.take_all(rows, home, [turn]))[turn]

    @classmethod
    def take_all(
        cls, connection: Connection, home: Home, turns: Collection[Turn]
    ) -> dict[Turn, Self]:
        held = held_lines(connection, home, {(turn.pipeline, turn.line) for turn in turns})
        windows = {(turn.pipeline, key) for turn in turns for key in (turn.before, turn.further)}
        links = line_rows.generations(connection, windows)
        failed = last_failures(connection, {turn.dag_id for turn in turns})
        return {
            turn: cls(
                held=(turn.pipeline, turn.line) in held,
                is_near=_trains(held.get((turn.pipeline, turn.line), ""), turn),
                links=links.get((turn.pipeline, turn.line, turn.before), []),
                further=links.get((turn.pipeline, turn.line, turn.further), []),
                failed_at=failed.get(turn.dag_id, 0) / 1_000_000,
            )
            for turn in turns
        }


def _trains(job_id: str, turn: Turn) -> bool:
    """Whether a job is one of the window before, in whatever generation."""
    return bool(job_id) and job_id.startswith(
        window_job_id(turn.pipeline, turn.line, turn.before, 1).removesuffix("1")
    )
