"""What a declaration is said to take is what the learner that is built of it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from support.learning import FEATURES, declared_towers, make_towers

from forebay.config.checks.model_size import model_size
from forebay.errors import ConfigError
from forebay.executors.trainer import train as trainer
from forebay.executors.trainer.train import require_memory

LABELS = {"click": {"column": "y"}, "sale": {"column": "y", "delay": "none"}}
MIXTURES: list[dict[str, Any]] = [
    {},
    {"embeddings": "shared", "memory_output": "both"},
    {"embeddings": "memory_only", "memory_tower": {"hidden": []}, "adapt_tower": {"hidden": [5]}},
    {"mode": "paper", "memory_output": "hidden"},
    {"memory_embeddings": True, "adapt_tower": {"hidden": []}},
]


def built(learner: Any) -> tuple[int, int]:
    """Parameters and bytes of the variables; without a few numbers of Adam, and guards."""
    parameters = size = 0
    for models in learner._seeds:
        kept: Mapping[str, Any] = {
            name: each
            for name, each in models.variables.items()
            if not name.startswith("guard_") and each.shape.rank
        }
        size += sum(math.prod(each.shape) * each.dtype.size for each in kept.values())
        parameters += sum(
            math.prod(each.shape)
            for name, each in kept.items()
            if name.rpartition("_")[2].startswith(("table", "weights"))
        )
    return parameters, size


@pytest.mark.parametrize(
    ("paradigms", "parts"),
    [
        (("batch",), {}),
        (("stream", "mixed", "batch_then_stream"), {"model": {"tower": {"hidden": []}}}),
        (("stream+head", "mixture+head"), {"train": {"seeds": 2}}),
        (("mixture+head", "batch"), {"labels": LABELS}),
        *((("mixture",), {"model": {"mixture": each}}) for each in MIXTURES),
        (("mixture", "stream"), {"model": {"mixture": MIXTURES[4]}, "labels": LABELS}),
    ],
)
def test_it_is_what_is_built(paradigms: tuple[str, ...], parts: dict[str, Any]) -> None:
    size = model_size(declared_towers(*paradigms, **parts))
    assert (size.parameters, size.bytes) == built(make_towers(*paradigms, **parts))
    assert size.building_bytes >= size.bytes


def test_a_model_that_only_counts_takes_nothing() -> None:
    assert model_size(declared_towers("stream", model={"kind": "count"})).building_bytes == 0


def test_a_host_without_the_memory_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = {**FEATURES, "user": {"encode": "hash", "buckets": 2**31 - 1, "dimension": 1}}
    pipeline = declared_towers("mixture", "stream", features=huge, train={"seeds": 2})
    monkeypatch.setattr(trainer, "available_bytes", lambda: 64 << 30)
    with pytest.raises(ConfigError) as refused:
        require_memory(pipeline)
    said = str(refused.value)
    assert "feature 'user' has 2,147,483,647 buckets of dimension 1: 96.0 GiB of a model" in said
    assert "but 64.0 GiB of memory are available here" in said
    monkeypatch.setattr(trainer, "available_bytes", lambda: 200 << 30)
    require_memory(pipeline)
