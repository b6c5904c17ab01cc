"""The five training paradigms, by name."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.config.models import Delay, ModelSpec, Variant
from forebay.mixture.models.layers.embeddings import Stack
from forebay.mixture.models.memory_adapt import Mixture
from forebay.mixture.models.paradigm import ParadigmModel
from forebay.mixture.models.single_tower import SingleTower


def make_paradigm(
    variant: Variant,
    delays: Sequence[Delay],
    dense: int,
    stacks: Sequence[Stack],
    model: ModelSpec,
) -> ParadigmModel:
    """The model of one variant for inputs of `dense` numbers and these stacks.

    delays: how it corrects each label; as many as it has outputs.
    """
    if variant.paradigm == "mixture":
        return Mixture(variant, delays, dense, stacks, model)
    return SingleTower(variant, delays, dense, stacks, model)
