"""Recorded plans of given tasks, without any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.manifests import MANIFEST_SCHEMA, arrow_bytes
from forebay.datatasks.plans.plan import SourcePlan, WindowPlan
from forebay.datatasks.plans.slice_rows import SliceRow


def task_table(source: str, tasks: Sequence[tuple[int, int]], first: int = 0) -> pa.Table:
    """One task of one range for each (hour, rows), numbered from `first`."""
    names = [f"{source}/{number}" for number in range(first, first + len(tasks))]
    ranges = [
        [{"path": name, "first": 0, "end": rows, "rows": rows, "size_bytes": 1}]
        for name, (_, rows) in zip(names, tasks, strict=True)
    ]
    columns = {
        "task_id": names,
        "source": [source] * len(tasks),
        "hour": [hour for hour, _ in tasks],
        "partition": [""] * len(tasks),
        "ranges": ranges,
        "rows": [rows for _, rows in tasks],
        "size_bytes": [1] * len(tasks),
        "cut": [False] * len(tasks),
        "last": [None] * len(tasks),
    }
    return pa.table(columns, schema=MANIFEST_SCHEMA)


def source_plan(
    source: str, span: tuple[datetime, datetime], tasks: Sequence[tuple[int, int]]
) -> SourcePlan:
    """A plan of one source, which is a stream of its own."""
    return SourcePlan(
        stream=source,
        source=source,
        feed="batch" if source == "history" else "stream",
        data_from=span[0],
        data_to=span[1],
        tasks=len(tasks),
        files=len(tasks),
        rows=sum(rows for _, rows in tasks),
        fingerprint="f",
    )


def record_tasks(
    ledger: Ledger,
    window: str,
    span: tuple[datetime, datetime],
    tasks: Mapping[str, Sequence[tuple[int, int]]],
    generation: int = 1,
) -> WindowPlan:
    plan = WindowPlan(
        window=window,
        generation=generation,
        start=span[0],
        end=span[1],
        sources={name: source_plan(name, span, each) for name, each in tasks.items()},
        fingerprint="f",
    )
    ledger.record_plan(plan, {name: task_table(name, each) for name, each in tasks.items()})
    return plan


def open_plan(ledger: Ledger, window: str, span: tuple[datetime, datetime]) -> WindowPlan:
    """Of a window that has no task yet, with slices of ten seconds."""
    sources = {name: source_plan(name, span, []) for name in ("history", "clicks")}
    plan = WindowPlan(
        window=window,
        generation=1,
        start=span[0],
        end=span[1],
        sources=sources,
        fingerprint="opened",
        is_open=True,
        opened_as="opened",
        slice_seconds=10.0,
    )
    ledger.record_plan(plan, {})
    return plan


def add_tasks(
    ledger: Ledger, plan: WindowPlan, source: str, number: int, tasks: Sequence[int], first: int
) -> None:
    """Tasks of so many rows each, stored as a slice of an open window."""
    table = task_table(source, [(number, rows) for rows in tasks], first)
    content = bytes(arrow_bytes(table))
    known = [row.number for row in ledger.slices(plan.window, 1) if row.source == source]
    added = SliceRow(source, number, plan.end, plan.sources[source], content)
    ledger.add_slice(plan, added, max(known, default=None))
