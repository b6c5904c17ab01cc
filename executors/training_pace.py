"""How fast a line was trained so far, and how long more rows would take at that pace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.system.message import Message

_NEWEST = 20  # older windows may have run with other features, or on another machine


class Pace(Message):
    """What the newest trained windows took, from the first frame to the link."""

    windows: int
    rows: int
    work_seconds: float

    def seconds(self, windows: Sequence[Mapping[str, int | None]]) -> float | None:
        """Seconds for windows with these rows by source, one after the other.

        A window whose rows only reading can count is taken for an average one. None where nothing
        was trained before.
        """
        if not self.windows:
            return None
        return sum(self._of_one(list(rows.values())) for rows in windows)

    def _of_one(self, counts: Sequence[int | None]) -> float:
        known = [count for count in counts if count is not None]
        if len(known) < len(counts) or not self.rows:
            return self.work_seconds / self.windows
        return self.work_seconds / self.rows * sum(known)


def pace_of(chain: ModelChain) -> Pace:
    """The pace of the newest windows of a line."""
    links = chain.last(_NEWEST)
    return Pace(
        windows=len(links),
        rows=sum(_rows(link) for link in links),
        work_seconds=sum((link.finished_at - link.started_at).total_seconds() for link in links),
    )


def _rows(link: Link) -> int:
    return sum(link.trained(source).rows for source in link.seen)
