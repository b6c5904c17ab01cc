"""Contradictions among a dataset's labels, and with the keys that name or correct them."""

from __future__ import annotations

from collections.abc import Iterator

from forebay.config.labels import NamedLabelSpec, delay_of
from forebay.config.pipelines import PipelineSpec
from forebay.config.problems import Problem
from forebay.config.spelling import nearest
from forebay.config.yaml_positions import Document, KeyPath
from forebay.system.names import NAME_RULE, is_name

_LABELS: KeyPath = ("dataset", "named_labels")
# Keys of a label that decide which rows are positive.
_RULE = {"column", "positive", "greater_than", "less_than"}


def check_several(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    """Problems of `dataset.named_labels`, and of other keys that name a label."""
    yield from _names(document, spec)
    yield from _doubles(document, spec)
    yield from _corrected(document, spec)
    yield from _published(document, spec)


def _names(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    for name in spec.dataset.named_labels:
        if not is_name(name):
            message = (
                f"label {name!r}: {NAME_RULE}, because scores and outputs of the model are named "
                "after it"
            )
            yield document.problem((*_LABELS, name), "name", message, at_key=True)
        elif name.startswith("memory_of_"):
            message = (
                f"label {name!r}: names that begin with memory_of_ are reserved for the outputs of "
                "memory towers; give it another name"
            )
            yield document.problem((*_LABELS, name), "name", message, at_key=True)


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
    elif labels and not any(_is_late(label, spec) for label in labels.values()):
        message = (
            "named_labels: all labels say `delay: none`, but variants are to correct late labels "
            "(train.delay, train.compare): remove it from one label, or remove the variants' delay"
        )
        yield document.problem(_LABELS, "label-delay", message, at_key=True)


def _is_late(label: NamedLabelSpec, spec: PipelineSpec) -> bool:
    return any(delay_of(label, each) != "none" for each in spec.train.variants)


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
