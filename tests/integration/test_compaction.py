"""A table that is compacted after its windows were trained: its rows are the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from support.iceberg_tables import CATALOG, TABLE, append, opened_table
from support.stages import pipeline

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.look.changes import changes_since
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.home.paths import Home

NOW = datetime(2026, 4, 1, tzinfo=UTC)
SPEC = pipeline(("a",))
FACTS = {
    "name": "a",
    "kind": "iceberg",
    "options": {"catalog": CATALOG, "table": TABLE},
    "columns": {"at": "timestamp", "n": "int"},
    "event_time": "at",
}
SOURCES = {"a": SourceSpec.model_validate(FACTS)}


def rows(day: int, count: int) -> pa.Table:
    at = [datetime(2026, 3, day, 12, 0, second, tzinfo=UTC) for second in range(count)]
    return pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "n": range(count)})


def planned(place: Path) -> tuple[Ledger, list[WindowPlan]]:
    for count in (5, 7):
        append(place, rows(1, count))
    append(place, rows(2, 3))
    ledger = Ledger(Home(place / "home"), "ads")
    windows = SPEC.dataset.grid.between("2026-03-01", "2026-03-02")
    report = plan_windows(place, SPEC, SOURCES, ledger, windows, warm_start=None, clock=lambda: NOW)
    return ledger, report.plans


def compact(place: Path, keep: int | None = None) -> None:
    """Write all rows to one new file, in snapshots that replace files."""
    with opened_table(place) as table:
        known = {each.snapshot_id for each in table.snapshots()}
        table.overwrite(table.scan().to_arrow().slice(0, keep))
        metadata = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(metadata.read_text())
    for snapshot in document["snapshots"]:
        if snapshot["snapshot-id"] not in known:
            snapshot["summary"]["operation"] = "replace"
    metadata.write_text(json.dumps(document))


def test_a_compaction_changes_no_data(tmp_path: Path) -> None:
    ledger, plans = planned(tmp_path)
    assert changes_since(tmp_path, SPEC, SOURCES, ledger, plans) == {}
    compact(tmp_path)
    assert changes_since(tmp_path, SPEC, SOURCES, ledger, plans) == {}
    append(tmp_path, rows(2, 1))
    found = changes_since(tmp_path, SPEC, SOURCES, ledger, plans)
    assert list(found) == ["2026-03-02"]


def test_rows_that_a_rewrite_loses_are_named(tmp_path: Path) -> None:
    ledger, plans = planned(tmp_path)
    compact(tmp_path, keep=6)
    found = changes_since(tmp_path, SPEC, SOURCES, ledger, plans)
    assert sum("rows now" in text for texts in found.values() for text in texts) >= 1
