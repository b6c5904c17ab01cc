"""The data task generation graph (Primus §4.2), and the order in which its operations may run.

For each window a timer (the window is closed), one source operation for each source (its tasks
are listed), a joiner (the tasks of all sources are there; rows are never joined) and a sink (the
window is recorded). The sink of a window also waits for the sink of the window before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from graphlib import TopologicalSorter
from heapq import heappop, heappush


class Kind(StrEnum):
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


Graph = Mapping[Operation, frozenset[Operation]]


def window_graph(windows: Sequence[str], sources: Sequence[str]) -> Graph:
    """Operations and what each waits for, in an order in which they can run one after another.

    windows: in order of time.

    Raises:
        ValueError: when a window or a source is named twice.
    """
    if len(set(windows)) != len(windows) or len(set(sources)) != len(sources):
        raise ValueError("windows and sources of a graph must be distinct")
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
    return found


class GraphRun:
    """One run of a graph: says what may start now, in window order, and is told how it ended.

    Of one source only one window is listed at a time, since one scan serves several. What waits
    for a failed operation never starts.
    """

    def __init__(self, graph: Graph) -> None:
        self._places = {operation: place for place, operation in enumerate(graph)}
        self._sorter = TopologicalSorter(graph)
        self._sorter.prepare()
        # By source, heaps of places: a year of hourly windows is ready at once.
        self._ready: defaultdict[str, list[tuple[int, Operation]]] = defaultdict(list)
        self._busy: set[str] = set()

    def next(self) -> Operation | None:
        """The first operation that nothing keeps waiting, which counts as started from now on.

        None while everything waits for what has started, and once all is over.
        """
        for fresh in self._sorter.get_ready():
            heappush(self._ready[fresh.source], (self._places[fresh], fresh))
        free = [heap for source, heap in self._ready.items() if heap and source not in self._busy]
        if not free:
            return None
        _, operation = heappop(min(free))
        if operation.source:
            self._busy.add(operation.source)
        return operation

    def finish(self, operation: Operation, *, failed: bool) -> None:
        self._busy.discard(operation.source)
        if not failed:
            self._sorter.done(operation)
