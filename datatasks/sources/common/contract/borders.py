"""Borders of windows in a stream: the offset at which one window ends and the next begins.

A stream's records arrive in their order of offsets and carry times in nearly that order. What is
between two offsets never changes; what is between two times does, while late records arrive. So
each border is decided once, and every plan uses it: no record is in two windows, and none is in
neither.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from forebay.errors import DataError


class Border(NamedTuple):
    """Where it is wanted: a partition, and the instant that parts the windows."""

    partition: str
    instant: datetime


Offsets = Mapping[Border, int]


class Borders(ABC):
    """The borders of one source.

    `topic` changes when the storage is recreated, and its offsets begin again.
    """

    @abstractmethod
    def near(self, topic: str, borders: Iterable[Border]) -> dict[Border, int]:
        """The borders that are decided of these, and the nearest ones around each."""

    @abstractmethod
    def partitions(self, topic: str) -> dict[str, datetime]:
        """The partitions that have a border, and their last: some may be gone by now."""

    @abstractmethod
    def latest_other(self, topic: str) -> tuple[str, datetime] | None:
        """Of other topics the one with the last border: it is gone, or declared no more."""

    def last_segments(self, partitions: Iterable[str], path: str | None) -> dict[str, str]:  # noqa: ARG002
        """Of each partition the one that was planned last, see `Scan.last_segments`.

        path: of the log that had them; None: any that the source has declared.
        """
        return {}

    @abstractmethod
    def decide(self, topic: str, proposed: Offsets) -> dict[Border, int]:
        """Decide borders for good, each as near to what is proposed as its neighbours allow.

        Returns:
            All of them; one that somebody decided meanwhile stays as it is.
        """


class Proposed(Borders):
    """Borders for a look that nothing follows from: as proposed, in order, kept nowhere."""

    def near(self, topic: str, borders: Iterable[Border]) -> dict[Border, int]:  # noqa: ARG002
        return {}

    def partitions(self, topic: str) -> dict[str, datetime]:  # noqa: ARG002
        return {}

    def latest_other(self, topic: str) -> tuple[str, datetime] | None:  # noqa: ARG002
        return None

    def decide(self, topic: str, proposed: Offsets) -> dict[Border, int]:  # noqa: ARG002
        return in_order({}, proposed)


def made_anew(place: str, what: str) -> DataError:
    """The error of a partition whose offsets mean other rows by now. what: how that is seen."""
    return DataError(
        f"{place}: {what}: it was truncated or recreated. Declare it as a new source, under "
        "another name, with `starts`"
    )


def in_order(decided: Offsets, proposed: Offsets) -> dict[Border, int]:
    """What is proposed, moved so that in each partition offsets rise with the instants.

    Earlier instants come first: a later one is moved after them, and before what is decided.

    decided: borders of the same partitions, in order already; at least the nearest ones.
    """
    found: dict[Border, int] = {}
    wanted = sorted({*decided, *proposed})
    for _, borders in groupby(wanted, key=lambda border: border.partition):
        ordered = list(borders)
        above: list[int | None] = [None] * len(ordered)
        for at in range(len(ordered) - 2, -1, -1):
            above[at] = decided.get(ordered[at + 1], above[at + 1])
        low: int | None = None
        for border, high in zip(ordered, above, strict=True):
            if border in decided:
                low = decided[border]
                continue
            offset = proposed[border] if low is None else max(proposed[border], low)
            low = found[border] = offset if high is None else min(offset, high)
    return found
