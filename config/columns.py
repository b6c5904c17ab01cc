"""The columns that the sources of a pipeline declare, taken together."""

from __future__ import annotations

from collections.abc import Mapping

from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import ColumnType, SourceSpec


def declared_columns(
    pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> dict[str, ColumnType]:
    """Columns of all sources of a pipeline; if a name is declared more than once, the first counts.

    `forebay check` makes sure that the declarations agree for every column the pipeline uses.
    """
    found: dict[str, ColumnType] = {}
    for name in pipeline.source_names:
        for column, declared in sources[name].columns.items():
            found.setdefault(column, declared)
    return found
