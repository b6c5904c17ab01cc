"""A fingerprint of everything that decides what a model's variables mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from forebay.config.datasets import LabelSpec
from forebay.config.features import feature_columns
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec

# What may change from one window to the next: it does not change the meaning of a variable.
_TUNABLE: dict[str, bool | set[str]] = {
    "embedding_learning_rate": True,
    "dense_learning_rate": True,
    "seed": True,
    "mixture": {"gain"},
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
    meaning = {
        "features": {
            name: feature.model_dump(mode="json") for name, feature in dataset.features.items()
        },
        "label": dataset.label.model_dump(mode="json", exclude=_unwritten(dataset.label)),
        "types": {column: str(kind) for column, kind in sorted(types.items())},
        "paradigms": pipeline.train.paradigms,
        "model": pipeline.model.model_dump(mode="json", exclude=_TUNABLE),
        "sources": pipeline.source_names,
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=False).encode()).hexdigest()[:16]


def _unwritten(label: LabelSpec) -> set[str]:
    """Keys that a label did not always have: where they are not written, nothing changed."""
    return {name for name in ("negative", "known_at") if getattr(label, name) is None}
