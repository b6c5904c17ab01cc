"""Where the windows of a stream's partitions begin and end, for kinds that count offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.borders import Border, Borders, in_order, require_within
from forebay.errors import DataError
from forebay.system.instants import from_us

Reached = Callable[[datetime, int], int]


class StreamBorders:
    """Offsets of every border of some spans: those that are decided, and proposals for the rest.

    Nothing is decided before `decide`: the spans may be refused by what is seen.
    """

    def __init__(
        self,
        borders: Borders,
        topic: str,
        partitions: Sequence[str],
        spans: Sequence[Interval],
        words: str,
    ) -> None:
        """Read what is decided.

        Args:
            borders: what is decided already, and where the rest is.
            topic: changes when the stream is made anew.
            partitions: that it has now.
            spans: of the windows that are planned.
            words: the stream in error texts.
        """
        self._borders, self._topic, self._words = borders, topic, words
        self.instants = sorted({each for span in spans for each in (span.start, span.end)})
        wanted = [Border(name, instant) for name in partitions for instant in self.instants]
        near = borders.near(topic, wanted)
        self.known = {border for border in wanted if border in near}
        self._elsewhere = {border.instant for border in self.known}
        self._decided: dict[str, dict[Border, int]] = {name: {} for name in partitions}
        for border, offset in near.items():
            self._decided[border.partition][border] = offset
        self._proposed: dict[Border, int] = {}
        self._offsets = near

    def propose(self, partition: str, first: int, end: int, reached: Reached) -> None:
        """Propose what is not decided of one partition.

        Args:
            partition: its name.
            first: the first offset that is stored.
            end: the offset that its next row will have.
            reached: from which offset on it has reached an instant; given the least one it may
                answer.

        Raises:
            DataError: when the partition ends before one of its borders.
        """
        decided = self._decided[partition]
        require_within(decided, end, self._place(partition))
        found: dict[Border, int] = {}
        low = first
        for border in sorted({*decided, *(Border(partition, at) for at in self.instants)}):
            if border in decided:
                low = max(low, decided[border])
            elif border.instant in self._elsewhere:  # it was not there yet: nothing of it is lost
                found[border] = low
            else:
                found[border] = low = max(low, reached(border.instant, low))
        self._proposed |= found
        self._offsets = self._offsets | in_order(decided, found)

    def decide(self) -> None:
        """Let the borders hold from now on; what somebody decided meanwhile holds already."""
        self._offsets = self._offsets | self._borders.decide(self._topic, self._proposed)

    def offsets(self, partition: str, span: Interval) -> tuple[int, int]:
        """Offsets [first, end) of a span."""
        first, end = (self._offsets[Border(partition, at)] for at in (span.start, span.end))
        return first, end

    def require_kept(
        self, partition: str, gone: int, span: Interval, *, is_whole: bool, newest: str
    ) -> None:
        """Raise when rows of the span were deleted, or may have been.

        A span that begins at a decided border has lost what lies between it and the first stored
        record. Without one, the first stored record being the span's first, records before it are
        gone, and nobody can tell any more whether some of them lay in the span.

        Args:
            partition: its name.
            gone: the first offset that is stored.
            span: the rows' time.
            is_whole: whether a declared `starts`, or a time limit, says that nothing of it is gone.
            newest: the time of the first stored record in words; empty where none is.

        Raises:
            DataError: which names what to declare.
        """
        first, end = self.offsets(partition, span)
        if first < min(gone, end):
            raise DataError(
                f"{self._place(partition)}: {span.start} to {span.end} has the offsets {first} to "
                f"{end}, and those before {gone} were deleted: run a later window, or declare "
                "`starts` behind this one in the source"
            )
        is_decided = first in self._decided[partition].values()
        if is_whole or is_decided or gone == 0 or first > gone:
            return
        since = f" (the first one left is of {newest})" if newest else ""
        raise DataError(
            f"{self._place(partition)}: the records before offset {gone} were deleted{since}, and "
            f"rows of {span.start} to {span.end} may be among them: declare `starts` in the "
            "source, or run a later window"
        )

    def _place(self, partition: str) -> str:
        return f"{self._words}, partition {partition}"


def time_text(microseconds: int) -> str:
    """An instant in words: whoever stamped it may have been wrong by thousands of years."""
    try:
        return str(from_us(microseconds))
    except OverflowError:
        return f"{microseconds} microseconds after 1970"
