"""Times of records around an offset: where the stream, not a single record, reaches an instant."""

from __future__ import annotations

from forebay.datatasks.sources.kafka.read import Access, Stretch, read_messages

# Longer runs of records ahead of their time are no mistake of a clock: the stream has moved on.
ODD_RUN_MAX = 100


class RecordTimes:
    """Times of one partition's records up to the last stable offset, read where they are asked for.

    Control records, and records that were aborted or compacted away, have none.
    """

    def __init__(self, access: Access, stretch: Stretch, latest_ms: int) -> None:
        """Nothing is read yet. latest_ms: no record at the partition's end is later than that."""
        self.calls = 0
        self._access = access
        self._stretch = stretch
        self._latest_ms = latest_ms
        self._reached: dict[int, int | None] = {}

    def first_since(self, instant_ms: int, first: int) -> int:
        """The least offset, from `first` on, behind which the stream has reached an instant.

        Found by bisection, as times rise but for runs that are shorter than what is looked at.
        """
        low, high = first, self._stretch.end
        while low < high:
            middle = low if low == first else (low + high) // 2
            if self._is_since(middle, instant_ms):
                high = middle
            else:
                low = middle + 1
        return low

    def _is_since(self, offset: int, instant_ms: int) -> bool:
        reached = self._earliest(offset)
        return reached is not None and reached >= instant_ms

    def _earliest(self, offset: int) -> int | None:
        """The earliest time of the next records, more than an odd run has; None at the end.

        A run at the end that is later than the clock allows is odd: nothing follows it that could
        say so.
        """
        if offset not in self._reached:
            self._reached[offset] = self._read(offset)
        return self._reached[offset]

    def _read(self, offset: int) -> int | None:
        self.calls += 1
        where = Stretch(self._stretch.topic, self._stretch.partition, offset, self._stretch.end)
        times: list[int] = []
        for batch in read_messages(self._access, where):
            times += batch.timestamps
            if len(times) > ODD_RUN_MAX:
                return min(times[: ODD_RUN_MAX + 1])
        while times and times[-1] > self._latest_ms:
            times.pop()
        return min(times, default=None)
