"""What all triggers share: fields that survive a restart, and no event that fires too soon."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

# If an event fires sooner than this after the deferral, a busy scheduler may take the executor's
# report on the first half of the task for the end of the second half, and fail it (Airflow 3.3).
QUIET_SECONDS = 10.0
# Airflow's own limit for a deferral ends it silently, so ours is this much earlier.
_MARGIN = timedelta(minutes=10)


def defer_timeout(seconds: float) -> timedelta:
    """Airflow's limit for a deferral that ends by itself after that many seconds."""
    return timedelta(seconds=max(0.0, seconds)) + _MARGIN


@dataclass(kw_only=True, eq=False, repr=False)
class WakingTrigger(BaseTrigger):
    """Fires one event when its watch ends.

    Another triggerer recreates it from its fields; those with `init=False` start anew there.
    Instants are as given by `time.time`.
    """

    not_before: float = field(default_factory=lambda: time.time() + QUIET_SECONDS)

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @abstractmethod
    async def watch(self) -> dict[str, Any]:
        """Wait, and return the event. What may block, such as a database call, needs a thread."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kind = type(self)
        names = [each.name for each in fields(self) if each.init]
        return f"{kind.__module__}.{kind.__qualname__}", {n: getattr(self, n) for n in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch, then fire, but not in the first seconds after the deferral."""
        event = await self.watch()
        await asyncio.sleep(min(QUIET_SECONDS, max(0.0, self.not_before - time.time())))
        yield TriggerEvent(event)
