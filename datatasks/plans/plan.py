"""What is planned for a window, in figures: the tasks themselves are tables of the ledger.

Light: whoever reads a plan imports neither Arrow nor NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from pydantic import Field

from forebay.config.specs.datasets import Feed
from forebay.config.specs.windows import Interval, Window
from forebay.system.message import Message
from forebay.system.output.counted import counted
from forebay.system.output.redaction import ShownText

SKIPPED = "skipped: "
NO_ROWS = "no rows"


class SourcePlan(Message):
    """What one source gives to one window through one stream: rows of [data_from, data_to).

    source: the name of its use, see `config.source_uses`.
    rows: None where only reading can tell. reason: why there are no tasks ("before start",
    "after end", NO_ROWS, "skipped: …"), or an empty text. fingerprint: of the source's data.
    hour_base: hours that the source starts into the window's data. offsets: of a stream, [first,
    end) by partition: what lies between them is the window's, whatever its time says. cut: see
    `SourcePlanner.cut`; empty where nothing was looked at. offset_seconds: of the stream.
    last_segments: see `Scan.last_segments`.
    """

    stream: str
    source: str
    feed: Feed
    data_from: datetime
    data_to: datetime
    tasks: int
    files: int
    rows: int | None
    reason: ShownText = ""
    fingerprint: str = ""
    hour_base: int = 0
    offsets: dict[str, tuple[int, int]] = Field(default_factory=dict)
    cut: str = ""
    offset_seconds: int = 0
    last_segments: dict[str, str] = Field(default_factory=dict)


class WindowPlan(Message):
    """One generation of one window. `sources` are in the pipeline's order.

    is_open: it still grows by slices; until it is closed, `sources` say no rows, and `fingerprint`
    is of nothing else. opened_as: that of a window that was opened, also once it is closed. While
    it is trained, the hours of its tasks are slices of so many seconds; 0 if it was never open.
    """

    window: str
    generation: int
    start: datetime
    end: datetime
    sources: dict[str, SourcePlan]
    fingerprint: str
    is_open: bool = False
    opened_as: str = ""
    slice_seconds: float = 0.0

    @property
    def begun_as(self) -> str:
        """By which seals know the plan that they are of: it stays as an open window grows."""
        return self.opened_as or self.fingerprint

    @property
    def tasks(self) -> int:
        return sum(source.tasks for source in self.sources.values())

    @property
    def rows(self) -> int | None:
        """Of all sources; None where only reading can tell of one, or where there is none."""
        counts = [source.rows for source in self.sources.values()]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each source, or offsets where only reading can tell."""
        return {
            name: sum(end - first for first, end in source.offsets.values())
            if source.rows is None
            else source.rows
            for name, source in self.sources.items()
        }

    @property
    def is_empty(self) -> bool:
        """Whether it is known that no source has a row for it."""
        return not self.is_open and bool(self.sources) and not any(self.counts.values())

    @property
    def as_window(self) -> Window:
        return Window(Interval(self.start, self.end), self.window)


def fewer_rows(before: Mapping[str, int], now: WindowPlan) -> list[str]:
    """In words, which sources have fewer rows now than before, when a window was trained."""
    return [
        f"source {name} has {count:,} rows now, and had {before[name]:,} when it was trained"
        + (f" ({now.sources[name].reason})" if now.sources[name].reason else "")
        for name, count in now.counts.items()
        if count < before.get(name, 0)
    ]


def segments_known(plan: WindowPlan, before: str) -> str:
    """Last segments as JSON, by use: of a plan, and of earlier ones where its use has none."""
    own = {use: each.last_segments for use, each in plan.sources.items() if each.last_segments}
    return json.dumps(json.loads(before or "{}") | own) if own else before


def plan_text(plan: WindowPlan) -> str:
    """A plan in one line: generation, tasks and rows of each source, and reasons for none."""
    parts = []
    for source in plan.sources.values():
        count = source.rows
        rows = "an unknown number of rows" if count is None else counted(count, "row")
        reason = f" ({source.reason})" if source.reason else ""
        parts.append(f"{source.source} {rows}{reason}")
    return f"generation {plan.generation}: " + ", ".join(parts)


def skipped_text(plan: WindowPlan) -> str:
    """Sources that the plan leaves out; an empty text when there are none."""
    skipped = [
        f"{source.source} ({source.reason.removeprefix(SKIPPED)})"
        for source in plan.sources.values()
        if source.reason.startswith(SKIPPED)
    ]
    return ", ".join(skipped)
