"""Times of records around an offset: where the stream, not a single record, reaches an instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forebay.datatasks.sources.common.odd_times import ODD_RUN_MAX, Ticks, odd_times, settled_times
from forebay.datatasks.sources.kafka.read import Reader, Stretch

# As many records say where the stream is: an odd run, and what follows it, are fewer.
_LOOKED_AT = 2 * ODD_RUN_MAX + 1


@dataclass(frozen=True)
class _Block:
    """Consecutive records, without those that are ahead of the clock.

    begins: the first record since the one before, which is ahead of the clock if it is another one.
    times: in milliseconds. is_last: whether they end the partition.
    """

    offsets: Ticks
    begins: Ticks
    times: Ticks
    is_last: bool


class RecordTimes:
    """Times of one partition's records up to the last stable offset, read where they are asked for.

    Control records, and records that were aborted or compacted away, have none.
    """

    def __init__(self, reader: Reader, stretch: Stretch, jump_ms: int, now_ms: int) -> None:
        """Nothing is read yet. jump_ms, now_ms: see `odd_times`."""
        self.calls = 0
        self._reader = reader
        self._stretch = stretch
        self._jump_ms = jump_ms
        self._now_ms = now_ms
        self._latest_ms = now_ms + jump_ms
        self._blocks: dict[int, _Block] = {}

    def has_record(self, offset: int) -> bool:
        """Whether a record is there for readers: none that was aborted, and no control record."""
        self.calls += 1
        only = self._stretch.between(offset, offset + 1)
        return any(messages.offsets for messages in self._reader.messages(only))

    def first_since(self, instant_ms: int, first: int) -> int:
        """The first record, from `first` on, that is not older than an instant, nor odd.

        The partition's end where there is none. Looked for around `first`; then by bisection, as
        half of some records in a row are older or none is; then one after the other.
        """
        found = self._reached(first, instant_ms)
        if found is not None:
            return found
        low, high = first, self._stretch.end
        while low < high:
            middle = (low + high) // 2
            if self._is_since(middle, instant_ms):
                high = middle
            else:
                low = middle + 1
        at = max(first, low - _LOOKED_AT)
        while at < self._stretch.end:
            found = self._reached(at, instant_ms)
            if found is not None:
                return found
            at = int(self._around(at).offsets[-_LOOKED_AT])
        return self._stretch.end

    def _reached(self, first: int, instant_ms: int) -> int | None:
        """The first such record of a few, with those behind them to judge by; None for none."""
        block = self._around(first)
        odd = odd_times(block.times, self._jump_ms, self._now_ms)
        reached = settled_times(block.times, odd) >= instant_ms
        found = np.flatnonzero(reached & (block.offsets >= first))
        if len(found) and (block.is_last or found[0] < len(block.times) - _LOOKED_AT):
            return max(first, int(block.begins[found[0]]))
        return self._stretch.end if block.is_last else None

    def _is_since(self, offset: int, instant_ms: int) -> bool:
        times = self._block(offset).times[:_LOOKED_AT]
        return len(times) == 0 or float(np.median(times)) >= instant_ms

    def _around(self, offset: int) -> _Block:
        """A block with what precedes an offset: a run that begins there is odd beside that."""
        return self._block(max(self._stretch.first, offset - ODD_RUN_MAX))

    def _block(self, offset: int) -> _Block:
        """Twice as many records as are looked at, from an offset on."""
        if offset not in self._blocks:
            self._blocks[offset] = self._read(offset)
        return self._blocks[offset]

    def _read(self, offset: int) -> _Block:
        self.calls += 1
        offsets, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        found = 0
        for messages in self._reader.messages(self._stretch.between(offset, self._stretch.end)):
            offsets.append(np.array(messages.offsets, np.int64))
            times.append(np.array(messages.timestamps, np.int64))
            found += int(np.count_nonzero(times[-1] <= self._latest_ms))
            if found > 2 * _LOOKED_AT:
                break
        return self._past(np.concatenate(offsets), np.concatenate(times))

    def _past(self, offsets: Ticks, times: Ticks) -> _Block:
        past = np.flatnonzero(times <= self._latest_ms)
        kept = past[: 2 * _LOOKED_AT]
        begins = np.concatenate([[0], kept[:-1] + 1])[: len(kept)]
        return _Block(offsets[kept], offsets[begins], times[kept], is_last=len(kept) == len(past))
