"""Contradictions between keys and between files. Pure: it sees declarations, never storage.

Only files without structural problems are compared, so that one mistake gives one problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice

from forebay.config.checks.column_fit import Misfit, feature_misfits, label_misfits
from forebay.config.checks.label_check import check_labels, label_path
from forebay.config.checks.loaded import Loaded
from forebay.config.checks.parts import DatasetParts, dataset_parts
from forebay.config.checks.pipeline_check import check_mixing
from forebay.config.checks.serving_check import check_serving
from forebay.config.specs.base import format_duration
from forebay.config.specs.datasets import Doubled, doubled_sources
from forebay.config.specs.features import CrossFeature, feature_columns
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import LIST_ITEMS, ColumnType, SourceSpec
from forebay.config.yaml.environment import written_secrets
from forebay.config.yaml.positions import Document, KeyPath
from forebay.config.yaml.problems import HINTS_MAX, PROBLEMS_MAX, Problem, errors
from forebay.config.yaml.spelling import nearest
from forebay.system.names import NAME_RULE, is_name

Sources = Mapping[str, Loaded[SourceSpec]]


def check_source(source: Loaded[SourceSpec]) -> list[Problem]:
    spec, secrets = source.repaired, list(written_secrets(source.document))
    if spec is None:
        return secrets
    return [*_event_time(source, spec), *_lifetime(source, spec), *secrets]


def _event_time(source: Loaded[SourceSpec], spec: SourceSpec) -> Iterator[Problem]:
    document, column = source.document, spec.event_time
    timestamps = [name for name, kind in spec.columns.items() if kind is ColumnType.TIMESTAMP]
    if column is None:
        if source.kind and source.options and source.kind.needs_event_time(source.options):
            message = (
                f"event_time is missing: kind {spec.kind} assigns rows to windows by it; "
                f"name the timestamp column that says when a row's event happened"
            )
            hint = f"event_time: {timestamps[0]}" if len(timestamps) == 1 else ""
            yield document.problem(("kind",), "event-time", message, hint)
    elif column not in spec.columns:
        message = f"event_time: column {column!r} is not declared in columns"
        hint = nearest(column, spec.columns, timestamps)
        yield document.problem(("event_time",), "event-time", message, hint)
    elif spec.columns[column] is not ColumnType.TIMESTAMP:
        message = f"event_time: column {column!r} is {spec.columns[column]}, not timestamp"
        hint = timestamps[0] if len(timestamps) == 1 else ""
        yield document.problem(("event_time",), "event-time", message, hint)


def _lifetime(source: Loaded[SourceSpec], spec: SourceSpec) -> Iterator[Problem]:
    if spec.starts and spec.ends and spec.ends <= spec.starts:
        message = f"ends: {spec.ends:%Y-%m-%dT%H:%M} is not after starts: no rows are left"
        yield source.document.problem(("ends",), "empty-range", message)


def check_pipeline(pipeline: Loaded[PipelineSpec], sources: Sources) -> list[Problem]:
    """Contradictions inside a pipeline and between it and its sources.

    Unknown names are also reported in files with structural problems, as far as these files can be
    read, so that whoever corrects a file sees everything in one go.
    """
    spec, parts = pipeline.repaired, dataset_parts(pipeline)
    names = chain(_stream_names(pipeline, parts), _source_names(pipeline, parts, sources))
    named = list(islice(names, PROBLEMS_MAX + 1))
    used = {name: sources[name] for name in parts.source_names if name in sources}
    sound = {
        name: loaded.spec
        for name, loaded in used.items()
        if loaded.spec is not None and not errors(loaded.problems)
    }
    whole = spec is not None and not named and len(sound) == len(used)
    problems = named
    if spec is not None:
        problems += check_mixing(pipeline.document, spec, sound if whole else None)
        problems += check_serving(pipeline.document, spec)
    if sound:
        columns = _Columns(pipeline.document, parts, sound).problems()
        problems += islice(columns, PROBLEMS_MAX + 1)
    if spec is not None and whole and not any(problem.code == "feed" for problem in problems):
        problems += islice(check_labels(pipeline.document, spec, sound), PROBLEMS_MAX + 1)
    return problems


def _stream_names(pipeline: Loaded[PipelineSpec], parts: DatasetParts) -> Iterator[Problem]:
    for stream in parts.streams:
        if not is_name(stream):
            message = f"stream {stream!r}: {NAME_RULE}, because files are named after it"
            path = ("dataset", "streams", stream)
            yield pipeline.document.problem(path, "name", message, at_key=True)


def _source_names(
    pipeline: Loaded[PipelineSpec], parts: DatasetParts, sources: Sources
) -> Iterator[Problem]:
    doubled = {
        (each.stream, each.place): each for each in doubled_sources(parts.streams, parts.offsets)
    }
    for stream, declared in parts.streams.items():
        for index, name in enumerate(declared):
            path = ("dataset", "streams", stream, "sources", index)
            if (stream, index) in doubled:
                message = _doubled_message(doubled[stream, index], parts)
                yield pipeline.document.problem(path, "source-twice", message)
            elif name not in sources:
                there = ", ".join(sources) or "none"
                message = f"stream {stream!r}: unknown source {name!r}. Declared sources: {there}"
                yield pipeline.document.problem(
                    path, "unknown-source", message, nearest(name, sources)
                )


def _doubled_message(found: Doubled, parts: DatasetParts) -> str:
    name, first = found.source, found.first
    if found.stream == first:
        return f"source {name!r} is listed twice in stream {first!r}: remove one"
    offset = format_duration(parts.offsets[first])
    return (
        f"stream {found.stream!r} reads source {name!r} with the offset of stream {first!r} "
        f"({offset}): each row would be in a window twice; give one of them a different offset, or "
        "remove one"
    )


class _Columns:
    def __init__(
        self, document: Document, parts: DatasetParts, sources: Mapping[str, SourceSpec]
    ) -> None:
        self._document = document
        self._parts = parts
        self._declared = {name: source.columns for name, source in sources.items()}
        self._hints_left = HINTS_MAX

    def problems(self) -> Iterator[Problem]:
        yield from self._event_id()
        yield from self._labels()
        yield from self._features()
        yield from self._slices()

    def _event_id(self) -> Iterator[Problem]:
        written = self._parts.event_id or []
        several = isinstance(written, list)
        for index, column in enumerate(written if isinstance(written, list) else [written]):
            path: KeyPath = ("dataset", "event_id", index) if several else ("dataset", "event_id")
            kind, problem = self._type_of(column, path, "event_id")
            if problem:
                yield problem
            elif kind in LIST_ITEMS:
                message = (
                    f"event_id: column {column!r} is {kind}, but an identity is a single value"
                )
                yield self._document.problem(path, "event-id-type", message)

    def _labels(self) -> Iterator[Problem]:
        for name, label in self._parts.targets.items():
            path, user = label_path(name), f"label {name!r}" if name else "label"
            kind, problem = self._type_of(label.column, (*path, "column"), user)
            if problem:
                yield problem
            elif kind:
                yield from (self._misfit(path, misfit) for misfit in label_misfits(label, kind))

    def _features(self) -> Iterator[Problem]:
        answers = {label.column for label in self._parts.targets.values()}
        for name, feature in self._parts.features.items():
            path: KeyPath = ("dataset", "features", name)
            for index, column in enumerate(feature_columns(name, feature)):
                key: KeyPath = (*path, "column")
                if isinstance(feature, CrossFeature):
                    key = (*path, "columns", index)
                kind, problem = self._type_of(column, key, f"feature {name!r}")
                if problem:
                    yield problem
                elif column in answers:
                    message = (
                        f"feature {name!r} reads column {column!r}, which is the label: a model "
                        "that sees the answer learns nothing; remove the feature"
                    )
                    yield self._document.problem(key, "label-as-feature", message)
                elif kind:
                    for misfit in feature_misfits(feature, column, kind):
                        yield self._misfit(path, misfit)

    def _slices(self) -> Iterator[Problem]:
        for index, name in enumerate(self._parts.slices):
            read = feature_columns(name, self._parts.features[name])
            listed = [c for c in read for each in self._declared.values() if c in each
                      and each[c] in LIST_ITEMS]  # fmt: skip
            if listed:
                message = f"slices: feature {name!r} has a list of values in each row; name another"
                yield self._document.problem(("dataset", "slices", index), "slice-type", message)

    def _type_of(
        self, column: str, path: KeyPath, user: str
    ) -> tuple[ColumnType | None, Problem | None]:
        """The one type that all sources declare for a column, or what is wrong with it."""
        without = [name for name, columns in self._declared.items() if column not in columns]
        if without:
            known = dict.fromkeys(c for name in without for c in self._declared[name])
            message = f"{user}: column {column!r} is not declared in source {', '.join(without)}"
            self._hints_left -= 1
            hint = nearest(column, known) if self._hints_left >= 0 else ""
            return None, self._document.problem(path, "unknown-column", message, hint)
        kinds = {name: columns[column] for name, columns in self._declared.items()}
        if len(set(kinds.values())) > 1:
            listed = ", ".join(f"{kind} in {name}" for name, kind in kinds.items())
            message = f"{user}: column {column!r} has different types: {listed}; declare one type"
            return None, self._document.problem(path, "column-types", message)
        return next(iter(kinds.values())), None

    def _misfit(self, path: KeyPath, misfit: Misfit) -> Problem:
        where = (*path, *misfit.path)
        raw = self._document.raw.get(where)
        hint = f'"{raw}"' if misfit.quote and raw else ""
        message = f"{path[-1]}: {misfit.message}"
        return self._document.problem(where, misfit.code, message, hint)
