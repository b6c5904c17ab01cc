"""How long a task has waited for its window's turn, and when it checks again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from forebay.system.message import Message

FIRST_LOOK_SECONDS = 60.0
LONGEST_LOOK_SECONDS = 300.0
# After a change the run of the previous window ends within seconds.
SOON_SECONDS = 15.0
# The event of a trigger that has seen a change.
CHANGED = "changed"


class TurnWait(Message):
    """A wait for the turn, carried from deferral to deferral.

    deadline: when to give up, as given by `time.time`. next_look: seconds after which the task
    checks even if nothing has changed. blocked_looks: how many checks in a row found that the run
    of the previous window cannot start.
    """

    deadline: float
    next_look: float = FIRST_LOOK_SECONDS
    blocked_looks: int = 0

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
        )

    def woken(self, event: Mapping[str, Any]) -> TurnWait:
        """After a change, check again soon."""
        if event.get("state") != CHANGED:
            return self
        return self.model_copy(update={"next_look": SOON_SECONDS})
