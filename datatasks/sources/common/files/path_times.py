"""Times in paths: which hour or day the rows of a file belong to, for many paths at once."""

from __future__ import annotations

import functools
from bisect import bisect
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.files.listing import is_hidden
from forebay.datatasks.sources.common.files.patterns import TimePattern, has_magic
from forebay.datatasks.sources.common.values.times import Times
from forebay.errors import ConfigError

# A listing of everything takes a call for a thousand files.
FOLDERS_MAX = 24
_SECOND_US = 1_000_000
_FIRST_DAY_US = -62_135_596_800_000_000


def matching(paths: pa.Array, regex: str) -> npt.NDArray[np.int64]:
    """Indices of the paths that match a regular expression as a whole.

    Raises:
        ConfigError: when it is none.
    """
    try:
        found = pc.match_substring_regex(paths, f"^(?:{regex})$")
    except pa.ArrowInvalid as error:
        raise ConfigError(f"the paths of a source cannot be searched: {error}") from error
    return np.flatnonzero(np.asarray(found).astype(np.bool_))


def span_folders(pattern: TimePattern, spans: Sequence[Interval]) -> list[str] | None:
    """The folders that hold all files of the spans; None where only a listing of all says it.

    Also None for more folders than one listing of everything is worth.
    """
    if not pattern.folder or has_magic(pattern.folder):
        return None
    pieces = [each for span in spans for each in pattern.folders(span.start, span.end)]
    found = {folder for piece in pieces for folder in piece}
    hidden = any(is_hidden(name) for folder in found for name in folder.split("/"))
    many = len({piece[0] for piece in pieces}) > FOLDERS_MAX
    return None if hidden or many else sorted(found)


@functools.lru_cache(maxsize=1024)
def path_span(path: str, pattern: TimePattern) -> tuple[int, int]:
    """As `path_times` of one path: a file has many tasks, and each of them asks.

    Raises:
        pyarrow.ArrowInvalid: for a path that names no day of the calendar.
    """
    low, high = path_times(pa.array([path]), pattern)
    return int(low[0]), int(high[0])


def path_times(paths: pa.Array, pattern: TimePattern) -> tuple[Times, Times]:
    """The span [low, high) in microseconds that each matching path names.

    Raises:
        pyarrow.ArrowInvalid: for a path that names no hour of the calendar.
    """
    parts = pc.extract_regex(paths, f"^{pattern.regex}$")
    names = [field.name for field in parts.type]
    hour = parts.field("H") if "H" in names else pa.repeat(pa.scalar("00"), len(paths))
    month, date, hour = (
        pc.utf8_lpad(each, 2, "0") for each in (parts.field("m"), parts.field("d"), hour)
    )
    day = pc.binary_join_element_wise(parts.field("Y"), month, date, "-")
    text = pc.binary_join_element_wise(day, pc.binary_join_element_wise(hour, ":00:00", ""), "T")
    seconds = text.cast(pa.timestamp("s")).cast(pa.int64())
    low = np.asarray(seconds).astype(np.int64) * _SECOND_US
    if (low < _FIRST_DAY_US).any():
        raise pa.ArrowInvalid("there is no year 0")
    return low, low + round(pattern.step.total_seconds()) * _SECOND_US


def first_unreal(paths: pa.Array, pattern: TimePattern) -> str:
    """Of matching paths that `path_times` refuses, the first one that it refuses."""

    def fails(end: int) -> bool:
        try:
            path_times(paths.slice(0, end), pattern)
        except pa.ArrowInvalid:
            return True
        return False

    return str(paths[bisect(range(1, len(paths)), 0, key=fails)])
