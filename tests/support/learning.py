"""Datasets, layouts and minibatches for tests of learners. Does not import TensorFlow itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from forebay.config.specs.datasets import DatasetSpec, Feed
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES
from forebay.mixture.features.encode import Encoded, Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.tensorflow_start import start_tensorflow

THREADS = 2


def dataset(features: dict[str, Any], **changed: Any) -> DatasetSpec:
    plain = {
        "start": "2013-01-01",
        "event_id": "e",
        "label": {"column": "y"},
        "streams": {"all": {"sources": ["s"]}},
        "features": features,
    }
    return DatasetSpec.model_validate(plain | changed)


def source(columns: dict[str, str]) -> SourceSpec:
    every = {"e": "string", "y": "int"} | columns
    return SourceSpec.model_validate({"name": "s", "kind": "memory", "columns": every})


def record_batch(spec: SourceSpec, rows: dict[str, list[Any]]) -> pa.RecordBatch:
    """Rows by column in declared types; `e` and `y` are made up where they are missing."""
    count = len(next(iter(rows.values())))
    rows = {"e": [f"event{n}" for n in range(count)], "y": [0] * count} | rows
    arrays = {name: pa.array(rows[name], ARROW_TYPES[kind]) for name, kind in spec.columns.items()}
    return pa.RecordBatch.from_pydict(arrays)


def encode(
    features: dict[str, Any], columns: dict[str, str], rows: dict[str, list[Any]], **changed: Any
) -> tuple[Encoded, FeatureLayout]:
    data, spec = dataset(features, **changed), source(columns)
    layout = FeatureLayout.of(data, spec.columns)
    batch = record_batch(spec, rows)
    return Encoder(data, spec, layout).encode(batch, np.arange(batch.num_rows)), layout


FEATURES: dict[str, Any] = {
    "user": {"encode": "hash", "buckets": 50, "dimension": 4},
    "item": {"encode": "hash", "buckets": 30, "dimension": 8},
    "price": {"encode": "numeric"},
    "tags": {"encode": "hash", "buckets": 20, "dimension": 4},
}
COLUMNS = {"user": "string", "item": "int", "price": "float", "tags": "list<string>"}


def declared_towers(
    *paradigms: str,
    features: dict[str, Any] = FEATURES,
    model: dict[str, Any] | None = None,
    train: dict[str, Any] | None = None,
    labels: dict[str, Any] | None = None,
) -> PipelineSpec:
    """A pipeline of variants `stream`, `stream+head`, …; labels: several, in place of `y`."""
    answers: dict[str, Any] = {} if labels is None else {"label": None, "named_labels": labels}
    variants = {**variant(paradigms[0]), "compare": [*map(variant, paradigms[1:])]}
    return PipelineSpec.model_validate(
        {
            "name": "p",
            "dataset": dataset(features, **answers).model_dump(mode="json"),
            "model": model or {},
            "train": variants | (train or {}),
        }
    )


def make_towers(
    *paradigms: str, columns: dict[str, str] = COLUMNS, sources: int = 2, **declared: Any
) -> Any:
    start_tensorflow(THREADS)
    from forebay.mixture.make_learner import make_learner

    kinds = source(columns).columns
    return make_learner(declared_towers(*paradigms, **declared), kinds, sources, THREADS)


def variant(name: str) -> dict[str, str]:
    paradigm, _, delay = name.partition("+")
    return {"paradigm": paradigm, "delay": delay or "none"}


def layout_of(features: dict[str, Any], columns: dict[str, str]) -> FeatureLayout:
    kinds = {name: ColumnType(kind) for name, kind in columns.items()}
    return FeatureLayout.of(dataset(features), source(columns).columns | kinds)


def minibatch(feed: Feed, seed: int, rows: int = 64, sources: int = 2) -> Minibatch:
    """Random rows for `FEATURES` whose label depends on user and item."""
    layout = layout_of(FEATURES, COLUMNS)
    rng = np.random.default_rng(seed)
    ids = np.stack([rng.integers(0, column.cardinality, rows) for column in layout.ids], axis=1)
    lengths = rng.integers(0, 4, rows)
    splits = np.concatenate([[0], np.cumsum(lengths)])
    tags = rng.integers(1, layout.lists[0].cardinality, splits[-1])
    logit = 3.0 * (ids[:, 0] % 3 - 1) + 1.5 * (ids[:, 1] % 2) - 0.5
    chosen = rng.random(rows) < 1 / (1 + np.exp(-logit))
    return Minibatch(
        feed=feed,
        row_ids=rng.integers(-(2**63), 2**63 - 1, rows),
        event_ids=rng.integers(0, 2**40, rows),
        sources=rng.integers(0, sources, rows).astype(np.int32),
        labels=chosen.astype(np.float32),
        dense=rng.normal(size=(rows, 1)).astype(np.float32),
        ids=ids,
        lists=((splits, tags),),
    )


def area(labels: Any, scores: Any) -> float:
    above = scores[labels > 0.5][:, None] > scores[labels < 0.5][None, :]
    return float(above.mean())
