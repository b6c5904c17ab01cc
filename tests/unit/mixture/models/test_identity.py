"""The model of a checkpoint, differences from which are named, and what it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from support import learning
from support.learning import dataset, declared_towers, layout_of, make_towers, variant

from forebay.config.checks.model_size import model_size
from forebay.config.specs.models import ModelSpec
from forebay.config.specs.pipelines import TrainSpec
from forebay.errors import ConfigError
from forebay.executors.trainer import train as trainer
from forebay.executors.trainer.train import require_memory
from forebay.mixture.models.identity import ModelIdentity

FEATURES: dict[str, Any] = {
    "user": {"encode": "hash", "buckets": 50, "dimension": 4},
    "price": {"encode": "numeric"},
}
COLUMNS = {"user": "string", "price": "float"}
MANY: dict[str, Any] = {"encode": "vocabulary", "values": [f"value {n}" for n in range(99)]}


def identity(
    model: dict[str, Any] | None = None,
    paradigms: tuple[str, ...] = ("mixture",),
    sources: int = 2,
    features: dict[str, Any] = FEATURES,
    columns: dict[str, str] = COLUMNS,
    **more: Any,
) -> ModelIdentity:
    spec = ModelSpec.model_validate(model or {})
    train = variant(paradigms[0]) | {"compare": [*map(variant, paradigms[1:])]} | more
    return ModelIdentity.of(
        layout_of(features, columns),
        spec,
        TrainSpec.model_validate(train),
        sources,
        dataset(features).targets,
    )


def mixture(**options: Any) -> ModelIdentity:
    return identity({"mixture": options})


def test_the_same_declaration_is_the_same_model_but_for_the_order_of_features() -> None:
    identity().require(identity())
    identity({"seed": 5, "mixture": {"gain": 0.5}}, guard=False).require(identity())
    identity(paradigms=("batch",)).require(
        identity({"mixture": {"memory_output": "both"}}, paradigms=("batch",))
    )
    more = FEATURES | {"place": {"encode": "hash", "buckets": 9}}
    columns = COLUMNS | {"place": "string"}
    swapped = {name: more[name] for name in ("place", "user", "price")}
    with pytest.raises(ConfigError, match="the order of the features"):
        identity(features=more, columns=columns).require(
            identity(features=swapped, columns=columns)
        )


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (identity(paradigms=("batch",)), r"paradigms \['batch'\] there, \['mixture'\] here"),
        (identity(sources=3), "3 sources there, 2 here"),
        (identity({"tower": {"hidden": [8]}}), r"tower \[8\] there, \[64, 32\] here"),
        (mixture(embeddings="shared"), "separate embeddings False there, True here"),
        (mixture(memory_inputs="random"), "memory_inputs random there, zero here"),
        (mixture(memory_embeddings=True), "memory_embeddings True there, False here"),
        (identity(seeds=3), "seeds 3 there, not here"),
        (identity(paradigms=("mixture+head",)), r"'mixture\+head'\] there, \['mixture'\] here"),
        (mixture(memory_tower={"hidden": [3]}), r"memory_tower \[3\] there, \[32, 16\] here"),
        (mixture(memory_output="both"), "memory_output both there, logit here"),
        (identity(features={"user": FEATURES["user"]}), "feature price not there"),
        (
            identity(features=FEATURES | {"user": {"encode": "hash", "buckets": 51}}),
            "model: feature user: buckets 51 there, 50 here, dimension 8 there, 4 here\\. Undo",
        ),
        (identity(columns=COLUMNS | {"price": "int"}), "columns.price int there, float here"),
        (
            identity(features=FEATURES | {"user": MANY}),
            "user: encode vocabulary there, hash here, values .*… there, not here",
        ),
    ],
)
def test_a_difference_is_named(found: ModelIdentity, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        identity().require(found)


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
    huge = {**learning.FEATURES, "user": {"encode": "hash", "buckets": 2**31 - 1, "dimension": 1}}
    pipeline = declared_towers("mixture", "stream", features=huge, train={"seeds": 2})
    monkeypatch.setattr(trainer, "available_bytes", lambda: 64 << 30)
    with pytest.raises(ConfigError) as refused:
        require_memory(pipeline)
    said = str(refused.value)
    assert "feature 'user' has 2,147,483,647 buckets of dimension 1: 96.0 GiB of a model" in said
    assert "but 64.0 GiB of memory are available here" in said
    monkeypatch.setattr(trainer, "available_bytes", lambda: 200 << 30)
    require_memory(pipeline)
