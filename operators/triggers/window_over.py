"""Wakes a task when its window has ended."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from forebay.operators.triggers.base import WakingTrigger

# Clocks may be changed during a sleep, so check again now and then.
_LOOK_SECONDS = 30.0


@dataclass(kw_only=True, eq=False, repr=False)
class WindowOverTrigger(WakingTrigger):
    """Fires at an instant."""

    until: float

    async def watch(self) -> dict[str, Any]:
        while (left := self.until - time.time()) > 0:
            await asyncio.sleep(min(left, _LOOK_SECONDS))
        return {}
