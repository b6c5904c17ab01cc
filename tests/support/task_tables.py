"""Recorded plans of given tasks, without any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.manifests import MANIFEST_SCHEMA
from forebay.datatasks.plans.plan import SourcePlan, WindowPlan


def task_table(source: str, tasks: Sequence[tuple[int, int]]) -> pa.Table:
    """One task of one range for each (hour, rows)."""
    names = [f"{source}/{number}" for number in range(len(tasks))]
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
