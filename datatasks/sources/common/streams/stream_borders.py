"""Where the windows of a stream's partitions begin and end, for kinds that count offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.borders import Border, Borders, in_order, made_anew
from forebay.datatasks.sources.common.contract.deleted_rows import MINUTE, RowsDeletedError
from forebay.datatasks.sources.common.values.far_times import are_far, far_words
from forebay.datatasks.sources.common.values.times import Times
from forebay.errors import DataError
from forebay.system.instants import to_us

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
        """Read what is decided. words: the stream in errors. topic: another if it is recreated."""
        self._borders, self._topic, self._words = borders, topic, words
        self.instants = sorted({each for span in spans for each in (span.start, span.end)})
        wanted = [Border(name, instant) for name in partitions for instant in self.instants]
        near = borders.near(topic, wanted)
        self.known = {border for border in wanted if border in near}
        self._elsewhere = {border.instant for border in self.known}
        self._decided: dict[str, dict[Border, int]] = {name: {} for name in partitions}
        for border, offset in near.items():
            self._decided[border.partition][border] = offset
        instants = {border.instant for border in near}
        self._absent_until = {name: self._last_absence(name, instants) for name in partitions}
        self._proposed: dict[Border, int] = {}
        self._offsets = near

    def border_before(self, border: Border) -> datetime | None:
        """The instant of the nearest earlier border of its partition, decided or to be decided."""
        decided = (each.instant for each in self._decided[border.partition])
        earlier = (each for each in {*self.instants, *decided} if each < border.instant)
        return max(earlier, default=None)

    def _was_absent(self, border: Border) -> bool:
        """Whether its partition was not there yet when a border as late was decided for others.

        A stream that reads the source with another offset has planned a window up to there: it
        reads all of the partition in its next one, so no border before that is further on.
        """
        absent_until = self._absent_until[border.partition]
        return absent_until is not None and border.instant <= absent_until

    def _last_absence(self, partition: str, instants: Iterable[datetime]) -> datetime | None:
        """The last of some instants at which a partition has no border; None where it has all."""
        mine = {each.instant for each in self._decided[partition]}
        # After the first of its own behind the spans, only borders of others are read.
        after = min((each for each in mine if each > self.instants[-1]), default=None)
        absent = (each for each in instants if each not in mine and (not after or each < after))
        return max(absent, default=None)

    def propose(self, partition: str, end: int, reached: Reached) -> None:
        """Propose what is not decided of one partition.

        end: the offset that its next row will have. reached: from which offset on it has reached an
        instant; given the least one it may answer.

        Raises:
            DataError: when the partition ends before one of its borders.
        """
        decided = self._decided[partition]
        if self.furthest(partition) > end:  # its offsets mean other rows by now
            raise made_anew(
                self.place(partition),
                f"its rows went up to offset {self.furthest(partition)} when its windows were "
                f"planned, but now end at {end}",
            )
        found: dict[Border, int] = {}
        low = 0
        for border in sorted({*decided, *(Border(partition, at) for at in self.instants)}):
            if border in decided:
                low = max(low, decided[border])
            elif self._was_absent(border):  # all of it comes later
                found[border] = low
            else:
                found[border] = low = max(low, reached(border.instant, low))
        self._proposed |= found
        self._offsets = self._offsets | in_order(decided, found)

    def decided(self, partition: str) -> list[int]:
        """The decided borders that are read of a partition, in order."""
        return sorted(set(self._decided[partition].values()))

    def furthest(self, partition: str) -> int:
        """The highest offset of the borders that are read of a partition."""
        return max(self._decided[partition].values(), default=0)

    def decide(self) -> None:
        """Let the borders hold from now on; what somebody decided meanwhile holds already."""
        self._offsets = self._offsets | self._borders.decide(self._topic, self._proposed)

    def offsets(self, partition: str, span: Interval) -> tuple[int, int]:
        """Offsets [first, end) of a span."""
        first, end = (self._offsets[Border(partition, at)] for at in (span.start, span.end))
        return first, end

    def require_kept(
        self,
        firsts: Mapping[str, int],
        spans: Sequence[Interval],
        *,
        is_whole: Callable[[Interval], bool],
        oldest: Callable[[str, Interval], str],
    ) -> None:
        """Raise when rows of a span were deleted, or may have been.

        A span that begins at a decided border has lost what is between it and the first stored
        record. Without one, the first stored record being the span's first, records before it are
        gone, and nobody can tell any more whether some of them lay in the span.

        firsts: the first offset that is stored of each partition. is_whole: whether a declared
        `starts`, or a time limit, says that nothing of a span is gone. oldest: the time of the
        first stored record in words; empty where none is.

        Raises:
            RowsDeletedError: which names what to do.
        """
        reasons: dict[Interval, str] = {}
        until = self._others_until(is_whole)
        for span in spans:
            if until is not None and span.start >= until:
                reasons[span] = self._of_others(span, until)
                continue
            for partition, gone in firsts.items():
                reason = self._deleted(partition, gone, span, is_whole=is_whole(span))
                if reason:
                    since = oldest(partition, span)
                    left = f" (the first one left is of {since})" if since else ""
                    reasons[span] = f"{self.place(partition)}: {reason}{left}"
                    break
        if reasons:
            raise RowsDeletedError(reasons)

    def require_near(
        self,
        stored: Mapping[str, tuple[int, int]],
        newest: Callable[[str], Times],
        ahead: timedelta,
        now: datetime,
    ) -> None:
        """Refuse to begin with a partition whose newest rows are all of 1970.

        Else no window would ever have them, and nobody would be told. Rows ahead of the clock come
        with what follows them; they are refused where nothing in any partition is of now.

        stored: the offsets [first, end) of each partition. newest: times of its newest rows; only
        asked for where no span has them. ahead: how far ahead of the clock they may be.

        Raises:
            DataError: which says what the times are.
        """
        now_us, far = to_us(now), list[str]()
        for name, (first, end) in stored.items():
            edges = [self._offsets[Border(name, instant)] for instant in self.instants]
            if first < end and not self._decided[name] and len(set(edges)) == 1:
                times = newest(name)
                if len(times) and are_far(times, now_us, ahead).all():
                    far.append(f"{self.place(name)}: {stamp_words(times, now_us)}")
                    if (times <= now_us).all():
                        raise DataError(far[-1])
        if far and len(far) == sum(first < end for first, end in stored.values()):
            raise DataError(far[0])

    def _others_until(self, is_whole: Callable[[Interval], bool]) -> datetime | None:
        """Up to where windows were planned, if the last of them by what was there before."""
        _, until = self._borders.latest_other(self._topic) or ("", None)
        mine = max(self._borders.partitions(self._topic).values(), default=None)
        if until is None or (mine is not None and mine >= until):
            return None
        return None if is_whole(Interval(until, until)) else until

    def _of_others(self, span: Interval, until: datetime) -> str:
        return (
            f"{self._words}: windows up to {until:{MINUTE}} were planned from a different one (it "
            f"was recreated, or the declaration changed), and rows of {_span_text(span)} may be "
            f"gone with it; if this one has them, declare `starts: {until:{MINUTE}}`"
        )

    def _deleted(self, partition: str, gone: int, span: Interval, *, is_whole: bool) -> str:
        """What was deleted of a span in one partition; empty when nothing was."""
        first, end = self.offsets(partition, span)
        if first < min(gone, end):
            return (
                f"{_span_text(span)} has the offsets {first} to {end}, and those before {gone} "
                "were deleted"
            )
        if gone == 0 or first > gone or self._begins_at_border(partition, span):
            return ""
        # No `starts` says that a window had no rows which ends before the first stored record.
        has_ended = first == end < gone and Border(partition, span.end) in self.known
        if is_whole and not has_ended:
            return ""
        starts = f"`starts: {span.start:{MINUTE}}`"
        unless = "" if has_ended else f"; if none of them was deleted, declare {starts}"
        return (
            f"records before offset {gone} were deleted, and rows of {_span_text(span)} may be "
            f"among them{unless}"
        )

    def _begins_at_border(self, partition: str, span: Interval) -> bool:
        """Whether it is known where a span begins: nothing before that offset is its own."""
        first, end = self.offsets(partition, span)
        absent = span.start in self._elsewhere or self._was_absent(Border(partition, span.start))
        if absent and first == end:
            return True  # the partition was not there yet
        return any(
            offset == first and border.instant <= span.start
            for border, offset in self._decided[partition].items()
        )

    def place(self, partition: str) -> str:
        return f"{self._words}, partition {partition}"


def _span_text(span: Interval) -> str:
    return f"{span.start:{MINUTE}} to {span.end:{MINUTE}}"


def stamp_words(times: Times, now_us: int) -> str:
    """What is wrong with the own times of the newest rows, which are all far, and what to do."""
    return (
        f"its rows' own times are wrong (the newest: {far_words(int(times[-1]), now_us)}), so no "
        "window has them: write them again, with the time at which they are published"
    )
