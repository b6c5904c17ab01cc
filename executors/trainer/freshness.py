"""How long after they were published rows of streams are trained on.

The lag of a stream is now minus the time at which the newest of its rows that a step has used was
published. KALE (§4.1) counts the time with a lag of more than 20 minutes as a broken promise; here
it is the rows that waited for longer than `job.continuous.lag_slo`, since a stream that is silent
breaks none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from forebay.datatasks.tasks import TaskProgress
from forebay.executors.job.measures import StreamLag

# A twentieth more from one bound to the next: percentiles are that exact. From 10 ms to 300 days.
_FIRST_SECONDS, _RATIO, _BOUNDS = 0.01, 1.05, 440
_LIMITS = _FIRST_SECONDS * _RATIO ** np.arange(_BOUNDS)


class Freshness:
    """Of one window in one trainer process."""

    def __init__(self, streams: Iterable[str], slo_seconds: float | None = None) -> None:
        """streams: the uses of sources that feed the stream. slo_seconds: `lag_slo`."""
        self._late = None if slo_seconds is None else int(np.searchsorted(_LIMITS, slo_seconds)) + 1
        self._counts = {name: np.zeros(_BOUNDS + 1, np.int64) for name in streams}
        self._newest_us = dict.fromkeys(self._counts, 0)

    def used(
        self, before: Mapping[str, TaskProgress], after: Mapping[str, TaskProgress], now_us: int
    ) -> None:
        """A step has used rows. before: positions until then, of the same tasks or more.

        Each of them counts as published when the last row before it was: its lag is that or less.
        """
        for task, at in after.items():
            counts = self._counts.get(task.rpartition("/")[0])
            if counts is None or at.last_us is None or at.first_us is None:
                continue
            then = before.get(task)
            rows = at.rows_read - (then.rows_read if then is not None else 0)
            oldest_us = then.last_us if then is not None else None
            lag_seconds = (now_us - (at.first_us if oldest_us is None else oldest_us)) / 1e6
            counts[np.searchsorted(_LIMITS, lag_seconds)] += rows
            name = task.rpartition("/")[0]
            self._newest_us[name] = max(self._newest_us[name], at.last_us)

    def lags(self) -> dict[str, StreamLag]:
        """By use of a source that has had rows."""
        return {
            name: StreamLag(
                newest_us=self._newest_us[name],
                rows=int(counts.sum()),
                p50_seconds=_percentile(counts, 0.50),
                p99_seconds=_percentile(counts, 0.99),
                late_share=None
                if self._late is None
                else float(counts[self._late :].sum() / counts.sum()),
            )
            for name, counts in self._counts.items()
            if counts.any()
        }


def _percentile(counts: np.ndarray[tuple[int], np.dtype[np.int64]], share: float) -> float:
    place = int(np.searchsorted(np.cumsum(counts), share * counts.sum()))
    return round(float(_LIMITS[min(place, _BOUNDS - 1)]), 3)
