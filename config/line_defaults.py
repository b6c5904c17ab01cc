"""Changed defaults: a model line keeps those with which its first window was trained.

Each set of defaults has a version. Version 1 holds the original defaults, and the newest is what
the models in `config` say now. What is written in YAML takes precedence in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.config.pipelines import PipelineSpec

# By version: earlier defaults of keys whose default has changed since.
_EARLIER: Mapping[int, Mapping[str, Any]] = {
    1: {"model": {"mixture": {"mode": "paper"}}, "train": {"guard": False}},
}
NEWEST = len(_EARLIER) + 1
# The version of requests and lines that were written before versions existed.
FIRST = 1


def with_defaults(spec: PipelineSpec, version: int) -> PipelineSpec:
    """The pipeline with the defaults of a version."""
    if version == NEWEST:
        return spec
    written = spec.model_dump(mode="json", exclude_unset=True)
    return PipelineSpec.model_validate({"name": spec.name, **filled(written, version)})


def filled(written: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A declaration as written, completed with the earlier defaults of a version."""
    return _merged(written, _EARLIER.get(version, {}))


def earlier_defaults(spec: PipelineSpec, version: int) -> dict[str, Any]:
    """Keys of a pipeline whose default differs in this version from the newest, by path."""
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
