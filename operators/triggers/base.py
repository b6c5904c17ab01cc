"""What all triggers share: fields that survive a restart, and no event too soon."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent

# An event sooner than this after the defer meets the executor's report of the first half of the
# task, which a busy scheduler then takes for the end of the second, and fails it (Airflow 3.3).
QUIET_SECONDS = 15.0
# Airflow's own limit of a deferral ends it silently: ours comes this much earlier.
_MARGIN = timedelta(minutes=10)


def defer_timeout(seconds: float) -> timedelta:
    """Airflow's limit for a deferral that ends by itself after that many seconds."""
    return timedelta(seconds=max(0.0, seconds)) + _MARGIN


class WakingTrigger(BaseTrigger):
    """Fires one event when its watch ends.

    `fields` names the arguments of the constructor, which are attributes too: another triggerer
    makes the same trigger from them.
    """

    fields: ClassVar[tuple[str, ...]]

    def __init__(self, *, not_before: float | None = None) -> None:
        """`not_before` is a time as `time.time` counts; None for one that is deferred to now."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.not_before = time.time() + QUIET_SECONDS if not_before is None else not_before

    @abstractmethod
    async def watch(self) -> dict[str, Any]:
        """Wait; the answer is the event. What may block, as a database may, runs in a thread."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments."""
        kind = type(self)
        names = (*self.fields, "not_before")
        return f"{kind.__module__}.{kind.__qualname__}", {n: getattr(self, n) for n in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch, keep quiet for the first seconds after the defer, then fire."""
        event = await self.watch()
        await asyncio.sleep(min(QUIET_SECONDS, max(0.0, self.not_before - time.time())))
        yield TriggerEvent(event)
