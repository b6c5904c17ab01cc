"""Borders of windows in a stream: the offset at which one window ends and the next begins.

A stream's records arrive in their order of offsets and carry times in nearly that order. What lies
between two offsets never changes; what lies between two times does, while late records arrive. So
each border is decided once, and every plan uses it: no record is in two windows, and none is in
neither.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from typing import NamedTuple


class Cut(NamedTuple):
    """Where a border is wanted: a partition, and the instant that parts the windows."""

    partition: str
    instant: datetime


Offsets = Mapping[Cut, int]


class Borders(ABC):
    """The borders of one source.

    `topic` changes when the storage is made anew, and its offsets begin again.
    """

    @abstractmethod
    def near(self, topic: str, cuts: Iterable[Cut]) -> dict[Cut, int]:
        """The borders that are decided at these cuts, and the nearest ones around each."""

    @abstractmethod
    def decide(self, topic: str, proposed: Offsets) -> dict[Cut, int]:
        """Decide borders for good, each as near to what is proposed as its neighbours allow.

        Returns:
            All of them; one that somebody decided meanwhile stays as it is.
        """


class Proposed(Borders):
    """Borders for a look that nothing follows from: as proposed, in order, kept nowhere."""

    def near(self, topic: str, cuts: Iterable[Cut]) -> dict[Cut, int]:  # noqa: ARG002
        """None."""
        return {}

    def decide(self, topic: str, proposed: Offsets) -> dict[Cut, int]:  # noqa: ARG002
        """See `Borders.decide`."""
        return in_order({}, proposed)


def in_order(decided: Offsets, proposed: Offsets) -> dict[Cut, int]:
    """What is proposed, moved so that in each partition offsets rise with the instants.

    Earlier instants come first: a later one is moved behind them, and before what is decided.

    Args:
        decided: borders of the same partitions, in order already; at least the nearest ones.
        proposed: for instants at which nothing is decided.
    """
    found: dict[Cut, int] = {}
    wanted = sorted({*decided, *proposed})
    for _, cuts in groupby(wanted, key=lambda cut: cut.partition):
        ordered = list(cuts)
        above: list[int | None] = [None] * len(ordered)
        for at in range(len(ordered) - 2, -1, -1):
            above[at] = decided.get(ordered[at + 1], above[at + 1])
        low: int | None = None
        for cut, high in zip(ordered, above, strict=True):
            if cut in decided:
                low = decided[cut]
                continue
            offset = proposed[cut] if low is None else max(proposed[cut], low)
            low = found[cut] = offset if high is None else min(offset, high)
    return found
