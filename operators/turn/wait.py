"""How long a task has waited for its window's turn, and when it checks again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import Field

from forebay.system.message import Message

FIRST_LOOK_SECONDS = 60.0
LONGEST_LOOK_SECONDS = 300.0
# After a change the run of the previous window ends within seconds.
SOON_SECONDS = 15.0
# How long a task is away that has left its place, for others of its DAG.
_AWAY_SHORTEST_SECONDS, _AWAY_LONGEST_SECONDS = 10.0, 60.0
# The event of a trigger that has seen a change.
CHANGED = "changed"


class TurnWait(Message):
    """A wait for the turn, carried from deferral to deferral.

    deadline: when to give up, as given by `time.time`. next_look: seconds after which the task
    checks even if nothing has changed. blocked_looks: how many checks in a row found that the run
    of the previous window cannot start. since: when it began.
    """

    deadline: float
    next_look: float = FIRST_LOOK_SECONDS
    blocked_looks: int = 0
    since: float = Field(default_factory=time.time)

    @classmethod
    def begun(cls, first: datetime | None, longest_seconds: float) -> Self:
        """As it is when the task starts. first: when it left its place first; None if never.

        What else it saw before is lost: it has looked as often as it might have since then.
        """
        since = time.time() if first is None else first.timestamp()
        looks = int((time.time() - since) // FIRST_LOOK_SECONDS)
        return cls(deadline=since + longest_seconds, since=since, blocked_looks=looks)

    @property
    def away_seconds(self) -> float:
        """How long to leave one's place: each look costs a task start, so a quarter of the wait."""
        waited = (time.time() - self.since) / 4
        return min(max(waited, _AWAY_SHORTEST_SECONDS), _AWAY_LONGEST_SECONDS)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.deadline - time.time()

    @property
    def is_soon(self) -> bool:
        """Whether something has changed since the last look, so that the turn is near."""
        return self.next_look == SOON_SECONDS

    def longer(self, *, blocked: bool) -> TurnWait:
        """The wait continues, with a longer sleep: each check costs a task start."""
        return TurnWait(
            deadline=self.deadline,
            next_look=min(2 * self.next_look, LONGEST_LOOK_SECONDS),
            blocked_looks=self.blocked_looks + 1 if blocked else 0,
            since=self.since,
        )

    def woken(self, event: Mapping[str, Any]) -> TurnWait:
        """After a change, check again soon."""
        if event.get("state") != CHANGED:
            return self
        return self.model_copy(update={"next_look": SOON_SECONDS})
