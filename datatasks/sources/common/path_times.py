"""Times in paths: which hour or day the rows of a file belong to, for many paths at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.datatasks.sources.common.patterns import TimePattern
from forebay.datatasks.sources.common.times import Times
from forebay.errors import ConfigError

_SECOND_US = 1_000_000


def matching(paths: pa.Array, regex: str) -> npt.NDArray[np.int64]:
    """Indices of the paths that match a regular expression as a whole.

    Raises:
        ConfigError: when it is none.
    """
    try:
        found = pc.match_substring_regex(paths, f"^(?:{regex})$")
    except pa.ArrowInvalid as error:
        raise ConfigError(f"the paths of a source cannot be searched for: {error}") from error
    return np.flatnonzero(np.asarray(found).astype(np.bool_))


def path_times(paths: pa.Array, pattern: TimePattern) -> tuple[Times, Times]:
    """The span [low, high) in microseconds that each matching path names.

    Raises:
        pyarrow.ArrowInvalid: for a path that names no day of the calendar.
    """
    parts = pc.extract_regex(paths, f"^{pattern.regex}$")
    names = [field.name for field in parts.type]
    hour = parts.field("H") if "H" in names else pa.repeat(pa.scalar("00"), len(paths))
    day = pc.binary_join_element_wise(parts.field("Y"), parts.field("m"), parts.field("d"), "-")
    text = pc.binary_join_element_wise(day, pc.binary_join_element_wise(hour, ":00:00", ""), "T")
    seconds = text.cast(pa.timestamp("s")).cast(pa.int64())
    low = np.asarray(seconds).astype(np.int64) * _SECOND_US
    return low, low + round(pattern.step.total_seconds()) * _SECOND_US
