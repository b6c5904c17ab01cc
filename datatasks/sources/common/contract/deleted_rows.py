"""Rows of a stream that were deleted: its log was trimmed, or the topic's retention took them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from forebay.config.specs.windows import Interval
from forebay.errors import DataError

MINUTE = "%Y-%m-%dT%H:%MZ"  # as a declaration may have it


class RowsDeletedError(DataError):
    """Rows of some spans were deleted, or may have been.

    reasons: for each of these spans, in order of time, what was deleted of it.
    """

    def __init__(self, reasons: Mapping[Interval, str], way_out: str = "") -> None:
        """The message is about the first span, and leads after the last, but for a `way_out`."""
        self.reasons = reasons
        super().__init__(f"{next(iter(reasons.values()))}. {way_out or ways_out(reasons)}")


def ways_out(spans: Iterable[Interval]) -> str:
    """What a person can do about rows of these spans that are gone for good."""
    behind: datetime = max(span.end for span in spans)
    return (
        "They cannot be planned again. Any line continues without them once the source declares "
        f"`starts: {behind:{MINUTE}}` or later; a line that has trained nothing yet may begin at a "
        "later window instead (--line NAME begins a new line)"
    )
