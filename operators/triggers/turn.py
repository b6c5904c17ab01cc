"""Wakes a task when it may be its window's turn to be trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from forebay.home.paths import Home
from forebay.operators.triggers.poll import News, PolledTrigger
from forebay.operators.turn.snapshot import Turn, TurnSnapshot
from forebay.operators.turn.wait import CHANGED


@dataclass(kw_only=True, eq=False, repr=False)
class TurnTrigger(PolledTrigger[Turn, TurnSnapshot]):
    """Watches the model line: fires when the previous window is newly trained and the line is free.

    It also fires when a run of the DAG has failed, and, where `seen` has `further`, when the window
    before the previous one is trained: a task takes a second to wake, and the next turn is its own.

    Only the task itself queries Airflow about the previous window's run, so it is woken from time
    to time in any case: in a triggerer the first query of that kind builds a whole API, blocks all
    its triggers for a long time, and makes the scheduler consider it dead.

    `before` is the previous window, `further` the one before that, `seen` the part of the snapshot
    that the task has seen.
    """

    dag_id: str
    pipeline: str
    line: str
    before: str
    seen: dict[str, Any]
    further: str = ""

    at_deadline = "look"

    @property
    def subject(self) -> str:
        return f"line {self.line!r} of pipeline {self.pipeline!r}"

    @property
    def key(self) -> Turn:
        return Turn(self.dag_id, self.pipeline, self.line, self.before, self.further)

    @classmethod
    def read_all(
        cls, connection: Connection, home: Home, keys: Collection[Turn]
    ) -> Mapping[Turn, TurnSnapshot]:
        return TurnSnapshot.take_all(connection, home, keys)

    def judge(self, found: TurnSnapshot) -> News | None:
        """A change, once the line is free; of `further` at once."""
        changed = {name for name, value in self.seen.items() if getattr(found, name) != value}
        is_news = "further" in changed or (changed and not found.held)
        return News(event={"state": CHANGED}) if is_news else None
