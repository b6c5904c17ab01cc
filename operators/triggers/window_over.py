"""Wakes a task when its window has ended."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from forebay.operators.triggers.base import WakingTrigger

# Clocks may be changed during a sleep, so check again now and then.
_LOOK_SECONDS = 30.0


class WindowOverTrigger(WakingTrigger):
    """Fires at an instant."""

    fields = ("until",)

    def __init__(self, *, until: float, not_before: float | None = None) -> None:
        """`until` is a time as given by `time.time`."""
        super().__init__(not_before=not_before)
        self.until = until

    async def watch(self) -> dict[str, Any]:
        """Sleep until the instant."""
        while (left := self.until - time.time()) > 0:
            await asyncio.sleep(min(left, _LOOK_SECONDS))
        return {}
