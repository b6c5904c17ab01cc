"""Which rows of a source a line has asked for so far, and which it has left out: pure decisions.

All times are the source's own: of a stream with an offset, that much earlier than its windows.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import Field

from forebay.config.specs.sources import AFTER_END, BEFORE_START, SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.plans.plan import SourcePlan, WindowPlan
from forebay.system.message import Message

Offsets = dict[str, tuple[int, int]]


class Span(Message):
    """Rows of [start, end), and why they were not asked for: BEFORE_START or AFTER_END."""

    start: datetime
    end: datetime
    reason: str

    def __str__(self) -> str:
        return str(Interval(self.start, self.end))


class Coverage(Message):
    """One use of a source, from the beginning of a line to one link of it.

    asked_from, asked_to: what the link's window asked for; None where it was nothing, for `reason`.
    offsets: the same of a stream, [first, end) by partition; of one that it has no more, where it
    ended. cut: see `SourcePlanner.cut`, of the newest window that looked. reached: everything
    before it was asked for, but for `left_out`. begun: whether anything was asked for so far. gap:
    rows that the window's plan declared away, though earlier ones were trained.
    """

    asked_from: datetime | None = None
    asked_to: datetime | None = None
    reason: str = ""
    offsets: Offsets = Field(default_factory=dict)
    cut: str = ""
    reached: datetime
    begun: bool = False
    left_out: tuple[Span, ...] = ()
    gap: Span | None = None


def extended(before: Coverage | None, window: WindowPlan, plan: SourcePlan) -> Coverage:
    """What is covered once a window is trained. before: by the link that it is built on."""
    whole = whole_of(window, plan)
    reached = whole.start if before is None else before.reached
    begun, left_out = (False, ()) if before is None else (before.begun, before.left_out)
    asks = plan.reason not in {BEFORE_START, AFTER_END}
    low, high = (plan.data_from, plan.data_to) if asks else (whole.end, whole.end)
    reason = BEFORE_START if asks else plan.reason
    early = [Span(start=reached, end=low, reason=reason)] if reached < low else []
    late = [Span(start=high, end=whole.end, reason=AFTER_END)] if high < whole.end else []
    return Coverage(
        asked_from=low if asks else None,
        asked_to=high if asks else None,
        reason=plan.reason,
        offsets={**_ends(before, plan, asks=asks), **plan.offsets},
        cut=plan.cut or ("" if before is None else before.cut),
        reached=max(reached, whole.end),
        begun=begun or asks,
        left_out=_merged((*left_out, *early, *late)),
        gap=next((each for each in early if begun and each.reason == BEFORE_START), None),
    )


def _ends(before: Coverage | None, plan: SourcePlan, *, asks: bool) -> Offsets:
    """Where partitions ended that are not in the plan: trimmed away, they may go on there.

    Empty where rows were skipped, and where a `starts` begins with other offsets.
    """
    ends = {} if before is None else {name: (end, end) for name, (_, end) in before.offsets.items()}
    shared = ends.keys() & plan.offsets.keys()
    goes_on = all(ends[name][1] == plan.offsets[name][0] for name in shared)
    return ends if goes_on and (plan.offsets or not asks) else {}


def whole_of(window: WindowPlan, plan: SourcePlan) -> Interval:
    """The span of a window in the source's time, whatever the source declares of its own."""
    offset = timedelta(seconds=plan.offset_seconds)
    return Interval(window.start, window.end).shifted_back(offset)


def withheld(covered: Coverage, source: SourceSpec) -> list[Span]:
    """Rows that a line has left out, though the source now declares that it has them."""
    parts = (
        (Interval(each.start, each.end).clipped(source.starts, source.ends), each.reason)
        for each in covered.left_out
    )
    return [Span(start=one.start, end=one.end, reason=reason) for one, reason in parts if one]


def misplaced(before: Coverage, after: Coverage, starts: datetime | None) -> tuple[Interval, bool]:
    """Rows between the end of what was covered and the beginning of what is asked for now.

    Empty where one begins at the other, or where the source declares that it begins there. The
    flag: whether they would be trained twice; otherwise they would never be.
    """
    ended, begins = before.reached, after.asked_from
    if begins is None or begins == ended or (begins > ended and begins == starts):
        return Interval(ended, ended), False
    return Interval(min(ended, begins), max(ended, begins)), begins < ended


def torn_partition(before: Coverage, after: Coverage, starts: datetime | None) -> str:
    """A partition that does not go on at the offset where the window before ended; or nothing."""
    begins = after.asked_from
    if begins is None or begins == starts or begins != before.asked_to:
        return ""
    if not before.offsets:
        return ""
    ended = {name: before.offsets.get(name, (0, 0))[1] for name in sorted(after.offsets)}
    torn = (name for name, offset in ended.items() if offset != after.offsets[name][0])
    return next(torn, "")


def _merged(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    found: list[Span] = []
    for each in spans:
        if found and found[-1].end == each.start and found[-1].reason == each.reason:
            found[-1] = found[-1].model_copy(update={"end": each.end})
        else:
            found.append(each)
    return tuple(found)
