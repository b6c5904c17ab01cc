"""Hours: what makes the tasks and rows of several sources of one window comparable.

A source counts whole hours from `data_from`, the start of the span that it is asked for: in the
tasks that it plans and in the chunks that it reads. Everyone else counts from the start of the
window's data, which all sources of a stream share: a manifest, a lease, a queue. The two differ by
the source's hour base, where the source begins inside the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.config.windows import HOUR, Interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def hour_base(whole: Interval, span: Interval) -> int:
    """Hours from the start of the window's data to the start of the span of one source in it."""
    return (span.start - whole.start) // HOUR


def window_hours(source_hours: npt.NDArray[np.int32], base: int) -> npt.NDArray[np.int32]:
    """Hours of a source's tasks or rows, counted from the start of the window's data."""
    return source_hours + source_hours.dtype.type(base) if base else source_hours
