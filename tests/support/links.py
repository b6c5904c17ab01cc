"""Links of a model line as training leaves them, without training."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from forebay.config.specs.windows import (
    WARM_START_SEPARATOR,
    Interval,
    Window,
    WindowGrid,
    WindowSize,
    is_warm_start,
)
from forebay.executors.model_line.judgement import Judgement
from forebay.executors.model_line.link import Link, Parent
from forebay.mixture.row_sums import RowSums

AT = datetime(2026, 3, 1, tzinfo=UTC)


def link(
    window: str,
    rows: Mapping[str, int] | None = None,
    rows_before: Mapping[str, int] | None = None,
    *,
    generation: int = 1,
    parent: tuple[str, int] | None = None,
    **more: Any,
) -> Link:
    """One window of four steps; `rows` and `rows_before`: what its model has seen by source."""
    facts: dict[str, Any] = {
        "parent": Parent(window=parent[0], generation=parent[1]) if parent else None,
        "step": 4,
        "steps": 4,
        "base_seen": sums(rows_before or {}),
        "seen": sums(rows or {}),
        "read": {},
        "files": {},
        "resumed_from_step": 0,
        "reread_rows": 0,
        "model_fingerprint": "same",
        "started_at": AT,
        "finished_at": AT,
    }
    span = window_of(window)
    return Link(
        window=window, start=span.start, end=span.end, generation=generation, **(facts | more)
    )


def judgement(of: Link | None = None, **more: Any) -> Judgement:
    """As a stored document says it; of no link: of a window that does not matter."""
    facts = {"window": of.window if of else "w", "generation": of.generation if of else 1}
    return Judgement.model_validate({**facts, "sources": {}, **more})


def window_of(key: str) -> Window:
    """The window of a key: a day, an hour or a warm start of days."""
    if is_warm_start(key):
        first, last = (window_of(part) for part in key.split(WARM_START_SEPARATOR))
        return Window(Interval(first.start, last.start), key)
    return WindowGrid(WindowSize.HOUR if "T" in key else WindowSize.DAY).parse(key)


def sums(rows: Mapping[str, int]) -> dict[str, RowSums]:
    return {source: RowSums(rows=count) for source, count in rows.items()}
