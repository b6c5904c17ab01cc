"""Wakes a task when it may be its window's turn to be trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection

from forebay.home.paths import Home
from forebay.operators.triggers.poll import News, PolledTrigger
from forebay.operators.turn.snapshot import Turn, TurnSnapshot
from forebay.operators.turn.wait import CHANGED


class TurnTrigger(PolledTrigger[Turn, TurnSnapshot]):
    """Watches the model line: fires when the previous window is newly trained and the line is free.

    It also fires when a run of the DAG has failed.

    Only the task itself queries Airflow about the previous window's run, so it is woken from time
    to time in any case: in a triggerer the first query of that kind builds a whole API, blocks all
    its triggers for a long time, and makes the scheduler consider it dead.
    """

    fields = ("home", "dag_id", "pipeline", "line", "before", "seen", "until")
    at_deadline = "look"

    def __init__(
        self,
        *,
        home: str,
        dag_id: str,
        pipeline: str,
        line: str,
        before: str,
        seen: dict[str, Any],
        until: float,
        not_before: float | None = None,
    ) -> None:
        """`before` is the previous window, `seen` the part of the snapshot the task has seen.

        `until` is when it wakes the task in any case, as given by `time.time`.
        """
        super().__init__(home=home, deadline=until, not_before=not_before)
        self.dag_id = dag_id
        self.pipeline = pipeline
        self.line = line
        self.before = before
        self.seen = dict(seen)
        self.until = until

    @property
    def subject(self) -> str:
        """The model line."""
        return f"line {self.line!r} of pipeline {self.pipeline!r}"

    @property
    def key(self) -> Turn:
        """The turn that is waited for."""
        return Turn(self.dag_id, self.pipeline, self.line, self.before)

    @classmethod
    def read_all(
        cls, connection: Connection, home: Home, keys: Collection[Turn]
    ) -> Mapping[Turn, TurnSnapshot]:
        """The snapshots that turns depend on."""
        return TurnSnapshot.take_all(connection, home, keys)

    def judge(self, found: TurnSnapshot) -> News | None:
        """A change, once the line is free."""
        changed = any(getattr(found, name) != value for name, value in self.seen.items())
        return News(event={"state": CHANGED}) if changed and not found.held else None
