"""Links of a model line as a training leaves them, without a training."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from forebay.executors.model_line.chain import Link
from forebay.mixture.row_sums import RowSums

AT = datetime(2026, 3, 1, tzinfo=UTC)


def link(window: str, seen: Mapping[str, int], before: Mapping[str, int]) -> Link:
    """Generation 1 of a window, in four steps, from rows seen before to rows seen after."""
    return Link(
        window=window,
        generation=1,
        parent=None,
        step=4,
        steps=4,
        base_seen={source: RowSums(rows=rows) for source, rows in before.items()},
        seen={source: RowSums(rows=rows) for source, rows in seen.items()},
        progress={},
        scores=[],
        resumed_from_step=0,
        reread_rows=0,
        model_fingerprint="f",
        started_at=AT,
        finished_at=AT,
    )
