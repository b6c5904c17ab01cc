"""The data task generation graph (Primus §4.2): pure, so that any face can run it step by step.

For each window a timer (the window is closed), one source operation for each source (its tasks
are listed), a joiner (the tasks of all sources are there; rows are never joined) and a sink (the
window is recorded). The sink of a window also waits for the sink of the window before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What an operation does."""

    TIMER = "timer"
    SOURCE = "source"
    JOINER = "joiner"
    SINK = "sink"


@dataclass(frozen=True)
class Operation:
    """One node. `source` is empty for all kinds but SOURCE."""

    kind: Kind
    window: str
    source: str = ""

    def __str__(self) -> str:
        """As the history shows it."""
        return f"{self.kind.value} {self.window} {self.source}".rstrip()


@dataclass(frozen=True)
class WindowGraph:
    """Operations of several windows and what each of them waits for, in window order."""

    dependencies: Mapping[Operation, frozenset[Operation]]

    @classmethod
    def of(cls, windows: Sequence[str], sources: Sequence[str]) -> WindowGraph:
        """The graph of windows (in order of time, distinct) over sources (distinct).

        Raises:
            ValueError: when a window or a source stands there twice.
        """
        if len(set(windows)) != len(windows) or len(set(sources)) != len(sources):
            raise ValueError("windows and sources of a graph are distinct")
        found: dict[Operation, frozenset[Operation]] = {}
        sunk: frozenset[Operation] = frozenset()
        for window in windows:
            timer, joiner, sink = (
                Operation(kind, window) for kind in (Kind.TIMER, Kind.JOINER, Kind.SINK)
            )
            listed = [Operation(Kind.SOURCE, window, source) for source in sources]
            found[timer] = frozenset()
            found.update(dict.fromkeys(listed, frozenset({timer})))
            found[joiner] = frozenset({timer, *listed})
            found[sink] = frozenset({joiner}) | sunk
            sunk = frozenset({sink})
        return cls(found)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All operations in an order in which they can run one after another."""
        return tuple(self.dependencies)

    def ready_operations(self, done: AbstractSet[Operation]) -> list[Operation]:
        """Operations that are not done and wait for nothing any more, in window order."""
        return [
            operation
            for operation, needs in self.dependencies.items()
            if operation not in done and needs <= done
        ]

    def blocked_by(self, failed: Iterable[Operation]) -> set[Operation]:
        """Operations that can never run once some have failed (those included)."""
        blocked = set(failed)
        for operation, needs in self.dependencies.items():
            if needs & blocked:
                blocked.add(operation)
        return blocked
