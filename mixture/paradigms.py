"""The five training paradigms, by name."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.config.models import ModelSpec, Paradigm
from forebay.mixture.embeddings import Stack
from forebay.mixture.memory_adapt import Mixture
from forebay.mixture.single_tower import SingleTower
from forebay.mixture.trained import Trained


def make_paradigm(name: Paradigm, dense: int, stacks: Sequence[Stack], model: ModelSpec) -> Trained:
    """The model of one paradigm for inputs of `dense` numbers and these stacks."""
    if name == "mixture":
        return Mixture(dense, stacks, model)
    return SingleTower(name, dense, stacks, model)
