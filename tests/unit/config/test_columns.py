"""Columns of several sources: one precedence for all callers."""

from __future__ import annotations

from forebay.config.explain import declared_columns
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import ColumnType, SourceSpec

PIPELINE = PipelineSpec.model_validate(
    {
        "name": "ads",
        "dataset": {
            "start": "2026-03-01",
            "event_id": "id",
            "label": {"column": "id"},
            "streams": {"old": {"sources": ["lake", "files"]}, "new": {"sources": ["clicks"]}},
            "features": {"id": {"encode": "hash", "buckets": 8, "dimension": 2}},
        },
    }
)


def test_the_first_declaration_counts() -> None:
    """In the pipeline's order; sources that it does not name have no say."""
    types = {"other": "bool", "clicks": "int", "files": "float", "lake": "string"}
    sources = {
        name: SourceSpec.model_validate(
            {"name": name, "kind": "memory", "columns": {"id": kind, name: kind}}
        )
        for name, kind in types.items()
    }
    assert list(declared_columns(PIPELINE, sources).items()) == [
        ("id", ColumnType.STRING),
        ("lake", ColumnType.STRING),
        ("files", ColumnType.FLOAT),
        ("clicks", ColumnType.INT),
    ]
