"""Wakes a task when it may be its window's turn to be trained."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from forebay.home.paths import Home
from forebay.operators.triggers.base import WakingTrigger
from forebay.operators.turn.snapshot import TurnSnapshot
from forebay.operators.turn.wait import CHANGED

LOOK_SECONDS = 1.0


class TurnTrigger(WakingTrigger):
    """Watches the model line's files: the window before is trained anew, and the line is free.

    A run of the DAG that failed is worth a look too.

    Airflow's word on the run of the window before is the task's to ask for, which therefore wakes
    from time to time in any case: in a triggerer the first question of that kind builds a whole
    API, blocks all its triggers for long, and makes the scheduler take it for dead.
    """

    fields = ("home", "dag_id", "pipeline", "line", "before", "seen", "until")

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
        """`before` is the window before, `seen` what the task saw of the files it waits for.

        `until` is when it wakes the task in any case, as `time.time` counts.
        """
        super().__init__(not_before=not_before)
        self.home = home
        self.dag_id = dag_id
        self.pipeline = pipeline
        self.line = line
        self.before = before
        self.seen = dict(seen)
        self.until = until

    async def watch(self) -> dict[str, Any]:
        """Look at the files every second."""
        home = Home(Path(self.home))
        while (left := self.until - time.time()) > 0:
            now = TurnSnapshot.take(home, self.dag_id, self.pipeline, self.line, self.before)
            changed = any(getattr(now, name) != value for name, value in self.seen.items())
            if changed and not now.held:
                return {"state": CHANGED}
            await asyncio.sleep(min(LOOK_SECONDS, left))
        return {"state": "look"}
