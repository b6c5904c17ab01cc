"""Paradigms with one tower: `batch`, `stream`, `batch_then_stream` and `mixed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from forebay.config.specs.models import Delay, ModelSpec, Variant
from forebay.mixture.models.late.late_labels import Loss
from forebay.mixture.models.layers.embeddings import Stack, Tables
from forebay.mixture.models.layers.towers import Tower
from forebay.mixture.models.paradigm import Inputs, ParadigmModel, named_variables, stepped, trained


class SingleTower(ParadigmModel):
    """One tower on one set of tables; the paradigms differ in the minibatches that they take."""

    def __init__(
        self,
        variant: Variant,
        delays: Sequence[Delay],
        dense: int,
        stacks: Sequence[Stack],
        model: ModelSpec,
    ) -> None:
        super().__init__(variant, delays)
        self._tables = Tables(stacks, model.seed, model.embedding_learning_rate)
        self._tower = Tower(
            dense + sum(stack.width for stack in stacks),
            model.tower.hidden,
            seed=model.seed,
            rate=model.dense_learning_rate,
            outputs=len(delays),
        )

    @property
    def variables(self) -> dict[str, tf.Variable]:
        return named_variables({"embeddings": self._tables, "tower": self._tower})

    @property
    def served(self) -> list[tf.Variable]:
        return [*self._tables.tables, self._tower.weights]

    def logits(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        features = inputs.features(self._tables.read(inputs.places))
        return {"score": self._tower.forward(self._tower.weights, features).logit}

    def reference_logit(self, inputs: Inputs) -> tf.Tensor | None:
        return self.logits(inputs)["score"] if self.variant.paradigm == "batch" else None

    @property
    def reference_served(self) -> list[tf.Variable]:
        return self.served if self.variant.paradigm == "batch" else []

    def learn(self, inputs: Inputs, losses: Mapping[str, Loss]) -> tf.Tensor:
        loss = losses["tower"]
        return stepped(loss, lambda: trained(self._tower, self._tables, inputs, loss))
