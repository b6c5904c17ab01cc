"""A pipeline as it will run: derived feeds, the size of every feature, its first windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.config.specs.base import format_duration
from forebay.config.specs.features import cardinality, feature_columns
from forebay.config.specs.feeds import stream_feed
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.config.specs.windows import Interval, Window, warm_start_window


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


Row = dict[str, Any]


def stream_rows(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> list[Row]:
    return [
        {
            "stream": name,
            "source": source,
            "kind": sources[source].kind,
            "feed": stream_feed(name, stream, sources),
            "offset": format_duration(stream.offset),
            "weight": stream.weight,
            "floor": stream.floor,
        }
        for name, stream in pipeline.dataset.streams.items()
        for source in stream.sources
    ]


def feature_rows(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> list[Row]:
    types = declared_columns(pipeline, sources)
    rows: list[Row] = []
    for name, feature in pipeline.dataset.features.items():
        columns = feature_columns(name, feature)
        rows.append(
            {
                "feature": name,
                "encode": feature.encode,
                "columns": columns,
                "types": [types[column].value for column in columns],
                "cardinality": cardinality(feature),
                "dimension": getattr(feature, "dimension", None),
            }
        )
    return rows


def first_windows(pipeline: PipelineSpec, count: int) -> list[Window]:
    """The warm start, if one is declared, and the first `count` windows of the dataset."""
    dataset = pipeline.dataset
    windows: list[Window] = []
    window = dataset.grid.at(dataset.start)
    while len(windows) < count and (dataset.end is None or window.start < dataset.end):
        windows.append(window)
        window = dataset.grid.after(window)
    warm_start = pipeline.train.warm_start
    if warm_start is None or not windows or warm_start >= windows[0].start:
        return windows
    return [warm_start_window(warm_start, windows[0]), *windows]


def window_rows(
    pipeline: PipelineSpec, sources: Mapping[str, SourceSpec], windows: list[Window]
) -> list[Row]:
    """One row for each window and use of a source: the span of data that its run reads."""
    offsets = {name: stream.offset for name, stream in pipeline.dataset.streams.items()}
    return [
        {
            "window": window.key,
            "source": use.name,
            **_span(window.span.shifted_back(offsets[use.stream]), sources[use.source]),
        }
        for window in windows
        for use in pipeline.uses
    ]


def _span(span: Interval, source: SourceSpec) -> Row:
    part, reason = source.part_of(span)
    shown = part or span
    return {"data_from": shown.start, "data_to": shown.end, "reason": reason}
