"""What a pipeline would run, before anything is planned."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from support.declarations import Value, declarations, write
from support.stages import pipeline as pipeline_of

from forebay.config.explain import declared_columns, feature_rows, first_windows, window_rows
from forebay.config.load import load_project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.window_range import parse_window


def project(root: Path, **dataset: Value) -> tuple[PipelineSpec, dict[str, SourceSpec]]:
    files = declarations()
    files["pipelines/ads.yaml"]["dataset"] |= dataset
    write(root / "config", files)
    loaded = load_project(root / "config", {})
    return loaded.pipeline("ads"), loaded.sources


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_features_with_their_sizes(tmp_path: Path) -> None:
    rows = {row["feature"]: row for row in feature_rows(*project(tmp_path))}
    sizes = {name: row["cardinality"] for name, row in rows.items()}
    assert sizes.items() >= {"user": 100, "mobile": 4, "steps": 4, "price": None}.items()
    pair = rows["pair"]
    assert (pair["columns"], pair["types"]) == (["user", "mobile"], ["string", "bool"])


def test_the_first_window_contains_the_start(tmp_path: Path) -> None:
    pipeline, _ = project(tmp_path, timezone="UTC", start="2026-03-01T07:00:00Z")
    first = first_windows(pipeline, 1)[-1]
    assert first.key == "2026-03-01"
    assert parse_window(pipeline, first.key) == first, "`run` accepts it"


def test_no_window_starts_at_the_end(tmp_path: Path) -> None:
    pipeline, _ = project(tmp_path, timezone="UTC", end="2026-03-02T12:00:00Z")
    keys = [window.key for window in first_windows(pipeline, 9)]
    assert keys == ["2026-02-01_2026-03-01", "2026-03-01", "2026-03-02"]
    assert first_windows(pipeline, 0) == [], "without windows there is no warm start"


def test_spans_are_shifted_and_clipped_to_each_source(tmp_path: Path) -> None:
    pipeline, sources = project(tmp_path, timezone="UTC")
    starts, ends = day("2026-02-28T06:00"), day("2026-03-01")
    sources["parquet"] = sources["parquet"].model_copy(update={"starts": starts, "ends": ends})
    rows = window_rows(pipeline, sources, first_windows(pipeline, 2)[1:])
    found = [tuple(row.values())[2:] for row in rows if row["source"] in {"parquet", "kafka"}]
    assert found == [
        (starts, ends, ""),
        (day("2026-03-01"), day("2026-03-02"), ""),
        (day("2026-03-01"), day("2026-03-02"), "after end"),
        (day("2026-03-02"), day("2026-03-03"), ""),
    ]


def test_the_first_declaration_counts() -> None:
    """In the pipeline's order; sources that it does not name have no say."""
    streams = {"old": {"sources": ["lake", "files"]}, "new": {"sources": ["clicks"]}}
    named = pipeline_of((), dataset={"streams": streams})
    types = {"other": "bool", "clicks": "int", "files": "float", "lake": "string"}
    sources = {
        name: SourceSpec.model_validate(
            {"name": name, "kind": "memory", "columns": {"id": kind, name: kind}}
        )
        for name, kind in types.items()
    }
    assert [(name, each.value) for name, each in declared_columns(named, sources).items()] == [
        *(("id", "string"), ("lake", "string"), ("files", "float"), ("clicks", "int"))
    ]
