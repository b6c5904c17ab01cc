"""Columns of several sources: one precedence for all callers."""

from __future__ import annotations

from support.stages import pipeline

from forebay.config.explain import declared_columns
from forebay.config.specs.sources import SourceSpec


def test_the_first_declaration_counts() -> None:
    """In the pipeline's order; sources that it does not name have no say."""
    streams = {"old": {"sources": ["lake", "files"]}, "new": {"sources": ["clicks"]}}
    named = pipeline((), dataset={"streams": streams})
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
