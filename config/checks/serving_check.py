"""Serving paths: no two lines may write to one, and a model that serves nothing has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os.path import normpath
from pathlib import Path

from forebay.config.checks.loaded import Loaded
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.yaml.positions import Document, KeyPath
from forebay.config.yaml.problems import Problem
from forebay.home.paths import DEFAULT_LINE

_PATH: KeyPath = ("job", "publish", "serving")


def check_serving(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    if spec.job.publish.serving is not None and spec.model.kind == "count":
        message = "serving: a model of kind `count` serves nothing; remove it"
        yield document.problem(_PATH, "serving-count", message, at_key=True)


def check_shared_paths(root: Path, pipelines: Mapping[str, Loaded[PipelineSpec]]) -> None:
    """Add a problem to each pipeline whose serving path is, or is in, that of an earlier one."""
    taken: dict[str, str] = {}
    for name, loaded in pipelines.items():
        declared = None if loaded.repaired is None else loaded.repaired.job.publish.serving
        if declared is None:
            continue
        path = _normal(root, declared)
        for other, owner in taken.items():
            if path == other or f"{path}/".startswith(f"{other}/") or other.startswith(f"{path}/"):
                message = (
                    f"serving: pipeline {owner!r} serves at this path, or inside it, and {name!r} "
                    "would too: give one of them another path"
                )
                loaded.problems.append(loaded.document.problem(_PATH, "serving-shared", message))
        taken.setdefault(path, name)


def _normal(root: Path, declared: str) -> str:
    declared = declared.replace("{line}", DEFAULT_LINE)
    if declared.startswith("s3://"):
        return declared.partition("?")[0].rstrip("/")
    return normpath(root / declared)
