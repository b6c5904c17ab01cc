"""Contradictions in label declarations: when labels are known, and how late ones are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from forebay.config.specs.base import format_duration
from forebay.config.specs.datasets import Feed, source_of
from forebay.config.specs.features import feature_columns
from forebay.config.specs.feeds import source_feeds
from forebay.config.specs.labels import delay_of
from forebay.config.specs.models import Variant
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.config.yaml.positions import Document, KeyPath
from forebay.config.yaml.problems import Problem
from forebay.config.yaml.spelling import nearest
from forebay.system.names import NAME_RULE, is_name

_LABELS: KeyPath = ("dataset", "named_labels")
# Keys of a label that decide which rows are positive.
_RULE = {"column", "positive", "greater_than", "less_than"}


def _names(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    for name in spec.dataset.named_labels:
        if not is_name(name):
            rule = f"{NAME_RULE}, because scores and outputs of the model are named after it"
        elif name.startswith("memory_of_"):
            rule = (
                "names that begin with memory_of_ are reserved for the outputs of memory towers; "
                "give it another name"
            )
        else:
            continue
        yield document.problem((*_LABELS, name), "name", f"label {name!r}: {rule}", at_key=True)


def _doubles(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    """Labels with the same rule, whose outputs would learn the same."""
    seen: dict[str, str] = {}
    for name, label in spec.dataset.named_labels.items():
        rule = label.model_dump_json(include=_RULE)
        if rule in seen:
            message = (
                f"label {name!r} reads column {label.column!r} by the same rule as label "
                f"{seen[rule]!r}: both outputs would learn the same; remove one, or give it "
                "another column or rule"
            )
            yield document.problem((*_LABELS, name, "column"), "label-twice", message)
        seen.setdefault(rule, name)


def _corrected(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    """A label's correction that no variant applies, and variants with nothing to correct."""
    labels = spec.dataset.named_labels
    correcting = [each for each in spec.train.variants if each.delay != "none"]
    if not correcting:
        for name, label in labels.items():
            if label.delay not in {None, "none"}:
                message = (
                    f"label {name!r}: delay: {label.delay} says how variants correct it, but no "
                    f"variant does: write `delay: {label.delay}` under train too, or remove it here"
                )
                yield document.problem((*_LABELS, name, "delay"), "label-delay", message)
    elif labels and not any(
        delay_of(label, each) != "none" for label in labels.values() for each in spec.train.variants
    ):
        message = (
            "named_labels: all labels say `delay: none`, but variants are to correct late labels "
            "(train.delay, train.compare): remove it from one label, or remove the variants' delay"
        )
        yield document.problem(_LABELS, "label-delay", message, at_key=True)


def _published(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    name, labels = spec.job.publish.label, spec.dataset.named_labels
    path: KeyPath = ("job", "publish", "label")
    if name is None:
        return
    if not labels:
        message = (
            f"publish.label: {name!r}, but the dataset has one label, without a name; remove it"
        )
        yield document.problem(path, "unknown-label", message, at_key=True)
    elif name not in labels:
        message = f"publish.label: no label {name!r}. Declared labels: {', '.join(labels)}"
        yield document.problem(path, "unknown-label", message, nearest(name, labels))
    elif spec.job.publish.when != "gate":
        message = (
            f"publish.label: {name!r} is the label that the gate decides by, but publish.when is "
            f"{spec.job.publish.when}; write `when: gate`, or remove it"
        )
        yield document.problem(path, "unread-label", message, at_key=True)


def label_path(name: str) -> KeyPath:
    """Where a label is declared; "" is a single label without a name."""
    return ("dataset", "named_labels", name) if name else ("dataset", "label")


def check_labels(
    document: Document, spec: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> Iterator[Problem]:
    """Problems of a pipeline whose sources are sound and whose streams have feeds."""
    feeds = source_feeds(spec, sources)
    batch, stream = (
        {source_of(use): sources[source_of(use)] for use, feed in feeds.items() if feed == wanted}
        for wanted in ("batch", "stream")
    )
    for name, label in spec.dataset.targets.items():
        path = label_path(name)
        if label.negative is not None and label.positive is None:
            message = "negative without positive: give both lists of values"
            yield document.problem((*path, "negative"), "label-rule", message)
        if label.known_at is not None:
            yield from _known_at(document, (*path, "known_at"), label.known_at, batch)
            yield from _leaks(document, spec, label.known_at)
    for check in (_join, _names, _doubles, _corrected, _published):
        yield from check(document, spec)
    if batch and stream and spec.model.kind == "towers":
        yield from _corrections(document, spec, stream)
        yield from _same_rows(document, spec, sources, feeds)


def _known_at(
    document: Document, path: KeyPath, column: str, batch: Mapping[str, SourceSpec]
) -> Iterator[Problem]:
    if not batch:
        message = (
            "known_at: no stream feeds batch, and a stream's labels are those known when it "
            "published them; remove it"
        )
        yield document.problem(path, "known-at", message, at_key=True)
    for name, source in batch.items():
        kind = source.columns.get(column)
        timestamps = [each for each, of in source.columns.items() if of is ColumnType.TIMESTAMP]
        if kind is None:
            message = f"known_at: column {column!r} is not declared in source {name}"
            yield document.problem(path, "known-at", message, nearest(column, timestamps))
        elif kind is not ColumnType.TIMESTAMP:
            message = f"known_at: column {column!r} is {kind} in source {name}, not timestamp"
            yield document.problem(path, "known-at", message)


def _leaks(document: Document, spec: PipelineSpec, column: str) -> Iterator[Problem]:
    for name, feature in spec.dataset.features.items():
        if column in feature_columns(name, feature):
            message = (
                f"feature {name!r} reads column {column!r}, which is the label's known_at: the "
                "time when a label became known gives the label away; remove the feature"
            )
            path = ("dataset", "features", name)
            yield document.problem(path, "label-as-feature", message, at_key=True)


def _join(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    longest = spec.dataset.offset_max
    written = {("dataset", "label_join"): spec.dataset.label_join} | {
        (*label_path(name), "label_join"): label.join_within
        for name, label in spec.dataset.targets.items()
    }
    for path, within in written.items():
        if within is not None and within < longest:
            message = (
                f"label_join: {format_duration(within)} is shorter than the largest offset "
                f"({format_duration(longest)}): batch rows that old would never be matched with "
                "their copies in the stream; raise it, or remove it"
            )
            yield document.problem(path, "label-join", message, format_duration(longest))


def _same_rows(
    document: Document,
    spec: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    feeds: Mapping[str, Feed],
) -> Iterator[Problem]:
    """Notes on batch rows that are the stream's own rows again: their labels are never checked."""
    fresh = {use.source: use.stream for use in spec.uses if feeds[use.name] == "stream"}
    for use in spec.uses:
        kind = sources[use.source].kind
        if feeds[use.name] == "batch" and use.source in fresh and not kind_named(kind).bounded:
            message = (
                f"stream {use.stream!r} feeds batch with the rows of source {use.source!r} that "
                f"stream {fresh[use.source]!r} reads when they are published: a {kind} never "
                "changes a row, so its label counts as complete; if labels arrive later, read "
                "complete ones from another source"
            )
            path: KeyPath = ("dataset", "streams", use.stream, "feed")
            yield replace(document.problem(path, "own-labels", message), severity="note")


def _corrections(
    document: Document, spec: PipelineSpec, stream: Mapping[str, SourceSpec]
) -> Iterator[Problem]:
    """A correction needs to know how long after the event each stream row was published."""
    for path, variant in _variants(spec):
        for name, source in stream.items():
            if kind_named(source.kind).bounded:
                problem = (
                    f"source {name!r} of kind {source.kind} does not say when its rows were "
                    "published; read the stream from a topic or a log"
                )
            elif source.event_time is None:
                problem = (
                    f"source {name!r} has no event_time, from which the delay of its rows is "
                    "measured; add it"
                )
            else:
                continue
            message = f"delay: {variant.delay!r} learns how late labels are, and {problem}"
            yield document.problem(path, "delay-time", f"{message}, or remove the delay")


def _variants(spec: PipelineSpec) -> Iterator[tuple[KeyPath, Variant]]:
    """Variants that correct late labels, and where each is declared."""
    for index, variant in enumerate(spec.train.variants):
        if variant.delay != "none" and variant.paradigm != "batch":
            where: KeyPath = ("train", "compare", index - 1) if index else ("train",)
            yield (*where, "delay"), variant
