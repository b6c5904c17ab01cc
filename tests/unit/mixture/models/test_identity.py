"""The model of a checkpoint: every difference from the declaration is named."""

from __future__ import annotations

from typing import Any

import pytest
from support.learning import dataset, layout_of, variant

from forebay.config.specs.models import ModelSpec
from forebay.config.specs.pipelines import TrainSpec
from forebay.errors import ConfigError
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
