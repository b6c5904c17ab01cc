"""What a model line's files say about a window's turn at one moment: seen cheaply."""

from __future__ import annotations

from typing import Self

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import line_holder
from forebay.home.paths import Home
from forebay.operators.runs.run_failures import last_failure
from forebay.system.message import Message


class TurnSnapshot(Message):
    """A glance for whoever waits: a change here makes it worth deciding anew.

    held: whether a job trains the line. links: generations in which the window before is trained.
    failed_at: when a run of the DAG failed last, as `time.time` counts; 0 when none did.
    """

    held: bool
    links: list[int]
    failed_at: float

    @classmethod
    def take(cls, home: Home, dag_id: str, pipeline: str, line: str, before: str) -> Self:
        """Look now, for the window that comes after `before`."""
        return cls(
            held=bool(line_holder(home, pipeline, line)),
            links=ModelChain(home, pipeline, line).generations(before),
            failed_at=_failed_at(home, dag_id),
        )


def _failed_at(home: Home, dag_id: str) -> float:
    return last_failure(home, dag_id) / 1_000_000
