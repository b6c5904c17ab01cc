"""Times that are far ahead of those around them: a producer's clock was wrong, or nobody's was.

A run of up to a hundred such times is odd, and decides nothing about windows. A longer one is no
mistake of a clock: the stream has moved on, and what comes after it is late. But no stream has
moved on to a time that has not come: what is ahead of the planner's clock is odd wherever it is.
Else no window would have what follows it, until that time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ODD_RUN_MAX = 100

Ticks = npt.NDArray[np.int64]
_NEVER = -(2**62)


def odd_times(times: Ticks, jump: int, now: int) -> npt.NDArray[np.bool_]:
    """Which of these are more than `jump` after both their neighbours, or after the clock.

    A run ends where times fall, and what they fall to has to stay for as long as the run. So one
    late time makes nothing odd that came before it, also where it is the last one. Where there is
    nothing before a run, more times have to follow than it has.

    times: in the order of offsets. now: the clock in their unit.
    """
    odd = times > now + jump
    past = np.flatnonzero(~odd)
    times = times[past]
    for last in np.flatnonzero(times[:-1] - times[1:] > jump):
        length = _run_before(times, int(last), jump)
        odd[past[last + 1 - length : last + 1]] = True
    return odd


def settled_times(times: Ticks, odd: npt.NDArray[np.bool_]) -> Ticks:
    """Times by which a stream is cut: an odd one counts as the next that is not, the last as none.

    So an odd run goes with what follows it. Were it passed over, a dataset that begins between what
    precedes a run and what follows it would never have the run's rows.
    """
    usual = np.append(np.where(odd, np.int64(_NEVER), times), np.int64(_NEVER))
    places = np.where(odd, len(times), np.arange(len(times)))
    return usual[np.minimum.accumulate(places[::-1])[::-1]]


def _run_before(times: Ticks, last: int, jump: int) -> int:
    """The length of the odd run that ends with `last`; 0 where none does."""
    for length in range(1, min(ODD_RUN_MAX, last + 1) + 1):
        first = last + 1 - length
        after = times[last + 1 : last + 1 + length]
        if len(after) < length or times[first : last + 1].min() <= after.max() + jump:
            return 0
        if first == 0:
            return length if len(times) - length > length else 0
        if times[first : last + 1].min() > times[first - 1] + jump:
            return length
    return 0
