"""Rows of a stream that retention has deleted: what may still be planned, and what may not."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.config.windows import Interval
from forebay.errors import DataError


@dataclass(frozen=True)
class Kept:
    """What is left of one partition, and what a span has of it.

    place: the partition in words. gone: the first stored offset. first, end: offsets of the span.
    is_decided: whether an earlier plan decided where the span begins. newest: of the first stored
    record, its time in words.
    """

    place: str
    gone: int
    first: int
    end: int
    is_decided: bool
    newest: str = ""


def refuse_deleted(kept: Kept, span: Interval, *, is_whole: bool) -> None:
    """Raise when rows of the span were deleted, or may have been.

    A span whose border was decided has lost what lies between it and the first stored record.
    Without a decided one, the first stored record being the span's first, records before it are
    gone, and nobody can tell any more whether some of them lay in the span.

    Args:
        kept: of one partition.
        span: the rows' time.
        is_whole: whether a declared `starts`, or a time limit, says that nothing of it is gone.

    Raises:
        DataError: which names what to declare.
    """
    if kept.first < min(kept.gone, kept.end):
        raise DataError(
            f"{kept.place}: {span.start} to {span.end} has the offsets {kept.first} to {kept.end}, "
            f"and those before {kept.gone} were deleted: run a later window, or declare `starts` "
            "behind this one in the source"
        )
    if is_whole or kept.is_decided or kept.gone == 0 or kept.first > kept.gone:
        return
    since = f" (the first one left is of {kept.newest})" if kept.newest else ""
    raise DataError(
        f"{kept.place}: the records before offset {kept.gone} were deleted{since}, and rows of "
        f"{span.start} to {span.end} may be among them: declare `starts` in the source, or run a "
        "later window"
    )
