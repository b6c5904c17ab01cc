"""A fingerprint of everything that decides what a model's variables mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.features import feature_columns
from forebay.config.specs.models import ModelSpec
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec

# May change from one window to the next: the meaning of the variables stays the same.
_TUNABLE: dict[str, bool | set[str]] = {
    "embedding_learning_rate": True,
    "dense_learning_rate": True,
    "seed": True,
    "mixture": {"gain"},
    "delay_head": True,
}
# Of a label: these decide which rows are trained on, not what the label means.
_OF_ROWS = {"negative", "known_at"}
# Of one of several labels: how much it counts and how far its rows are joined.
_OF_LEARNING = {"weight", "label_join"}
# Values that go without saying: a fingerprint names only others.
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
        **_labels(dataset),
        "types": {column: str(kind) for column, kind in sorted(types.items())},
        "paradigms": pipeline.train.paradigms,
        "model": _model(pipeline.model),
        "sources": pipeline.use_names,
    }
    if any(each.delay == "head" for each in pipeline.train.variants):
        meaning["delay_head"] = list(pipeline.model.delay_head.hidden)
    if pipeline.train.seeds > 1:
        meaning["seeds"] = pipeline.train.seeds
    return hashlib.sha256(json.dumps(meaning, sort_keys=False).encode()).hexdigest()[:16]


def _labels(dataset: DatasetSpec) -> dict[str, Any]:
    """One label in its original form; several by name, in their order."""
    if dataset.label is not None:
        return {"label": dataset.label.model_dump(mode="json", exclude=_OF_ROWS)}
    left_out = _OF_ROWS | _OF_LEARNING
    rules = {
        name: label.model_dump(mode="json", exclude=left_out)
        for name, label in dataset.named_labels.items()
    }
    return {"labels": rules}


def _model(model: ModelSpec) -> dict[str, Any]:
    found = model.model_dump(mode="json", exclude=_TUNABLE)
    mixture = found["mixture"]
    found["mixture"] = {
        key: value for key, value in mixture.items() if key not in _UNSAID or _UNSAID[key] != value
    }
    return found
