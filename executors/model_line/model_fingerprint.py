"""A fingerprint of everything that decides what a model's variables mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from forebay.config.datasets import LabelSpec
from forebay.config.features import feature_columns
from forebay.config.models import ModelSpec
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec

# What may change from one window to the next: it does not change the meaning of a variable.
_TUNABLE: dict[str, bool | set[str]] = {
    "embedding_learning_rate": True,
    "dense_learning_rate": True,
    "seed": True,
    "mixture": {"gain"},
    "delay_head": True,
}
# What went without saying before there was a choice. It is left out, so that the fingerprint of a
# line that keeps it stays what it was.
_UNSAID = {
    "mode": "paper",
    "memory_inputs": "random",
    "adapt_learns": "stream",
    "memory_embeddings": False,
}


def model_fingerprint_of(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> str:
    """Hash of features, label, paradigms, model and source order; not of how the job runs."""
    dataset = pipeline.dataset
    columns = {column for name, feature in dataset.features.items()
               for column in feature_columns(name, feature)}  # fmt: skip
    types = {
        column: kind
        for name in pipeline.source_names
        for column, kind in sources[name].columns.items()
        if column in columns
    }
    meaning: dict[str, Any] = {
        "features": {
            name: feature.model_dump(mode="json") for name, feature in dataset.features.items()
        },
        "label": dataset.label.model_dump(mode="json", exclude=_unwritten(dataset.label)),
        "types": {column: str(kind) for column, kind in sorted(types.items())},
        "paradigms": pipeline.train.paradigms,
        "model": _model(pipeline.model),
        "sources": pipeline.source_names,
    }
    if any(each.delay == "head" for each in pipeline.train.variants):
        meaning["delay_head"] = list(pipeline.model.delay_head.hidden)
    if pipeline.train.seeds > 1:
        meaning["seeds"] = pipeline.train.seeds
    return hashlib.sha256(json.dumps(meaning, sort_keys=False).encode()).hexdigest()[:16]


def _model(model: ModelSpec) -> dict[str, Any]:
    found = model.model_dump(mode="json", exclude=_TUNABLE)
    mixture = found["mixture"]
    found["mixture"] = {
        key: value for key, value in mixture.items() if key not in _UNSAID or _UNSAID[key] != value
    }
    return found


def _unwritten(label: LabelSpec) -> set[str]:
    """Keys that a label did not always have: where they are not written, nothing changed."""
    return {name for name in ("negative", "known_at") if getattr(label, name) is None}
