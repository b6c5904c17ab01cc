"""A plan in one line, as `forebay why` says it."""

from __future__ import annotations

from pathlib import Path

from support.stages import noon, stages, table

from forebay.datatasks.plans.plan import plan_text, skipped_text
from forebay.datatasks.sources.memory.source import MEMORY

KEY = "2026-03-01"


def test_plans_in_a_line(tmp_path: Path) -> None:
    with stages(tmp_path, ("a", "b")) as project:
        for name in ("a", "b"):
            MEMORY[name] = table([noon(0)])
            project.source(0, name)
        project.sink(0)
        found = project.ledger.plan(KEY, 1)
    assert (plan_text(found), skipped_text(found)) == ("generation 1: a 1 row, b 1 row", "")
    a, b = found.sources["a"], found.sources["b"]
    changed = {
        "a": a.model_copy(update={"rows": None}),
        "b": b.model_copy(update={"rows": 0, "reason": "skipped: no marker"}),
        "c": b.model_copy(update={"source": "c", "rows": 12_345, "reason": "no rows"}),
    }
    odd = found.model_copy(update={"sources": changed})
    assert plan_text(odd) == (
        "generation 1: a an unknown number of rows, b 0 rows (skipped: no marker), "
        "c 12,345 rows (no rows)"
    )
    assert skipped_text(odd) == "b (no marker)"
