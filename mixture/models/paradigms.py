"""The five training paradigms, by name."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.config.models import ModelSpec, Variant
from forebay.mixture.models.layers.embeddings import Stack
from forebay.mixture.models.memory_adapt import Mixture
from forebay.mixture.models.paradigm import ParadigmModel
from forebay.mixture.models.single_tower import SingleTower


def make_paradigm(
    variant: Variant, dense: int, stacks: Sequence[Stack], model: ModelSpec
) -> ParadigmModel:
    """The model of one variant for inputs of `dense` numbers and these stacks."""
    if variant.paradigm == "mixture":
        return Mixture(variant, dense, stacks, model)
    return SingleTower(variant, dense, stacks, model)
