"""Defaults that changed: a model line keeps those with which its first window was trained.

Each set of defaults has a version. Version 1 is what was the default before others came, and
the newest is what the models of `config` say now. What is written in YAML counts in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.config.pipelines import PipelineSpec

# By version: what an unwritten key meant, where it means something else now.
_EARLIER: Mapping[int, Mapping[str, Any]] = {
    1: {"model": {"mixture": {"mode": "paper"}}, "train": {"guard": False}},
}
NEWEST = len(_EARLIER) + 1
# Those of requests and lines from before versions were counted.
FIRST = 1


def with_defaults(spec: PipelineSpec, version: int) -> PipelineSpec:
    """The pipeline as it is meant by the defaults of a version."""
    if version == NEWEST:
        return spec
    written = spec.model_dump(mode="json", exclude_unset=True)
    return PipelineSpec.model_validate({"name": spec.name, **filled(written, version)})


def filled(written: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A declaration as it is written, with what else it meant by the defaults of a version."""
    return _merged(written, _EARLIER.get(version, {}))


def earlier_defaults(spec: PipelineSpec, version: int) -> dict[str, Any]:
    """Keys of a pipeline that a version's defaults set otherwise than the newest, by their path."""
    then = with_defaults(spec, version).model_dump(mode="json")
    return dict(_changes(spec.model_dump(mode="json"), then, ""))


def _merged(written: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(written)
    for key, value in defaults.items():
        if isinstance(value, Mapping):
            found[key] = _merged(found.get(key) or {}, value)
        elif key not in found:
            found[key] = value
    return found


def _changes(now: Mapping[str, Any], then: Mapping[str, Any], path: str) -> list[tuple[str, Any]]:
    changes: list[tuple[str, Any]] = []
    for key, value in then.items():
        if isinstance(value, dict):
            changes += _changes(now[key], value, f"{path}{key}.")
        elif now[key] != value:
            changes.append((path + key, value))
    return changes
