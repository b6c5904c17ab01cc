"""The paradigm `mixture`: a memory tower and an adapt tower (Primus Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from forebay.config.datasets import Feed
from forebay.config.models import MixtureSpec, ModelSpec
from forebay.mixture.models.embeddings import Stack, Tables
from forebay.mixture.models.paradigm import (
    Inputs,
    ParadigmModel,
    checked,
    mean_loss,
    named_variables,
)
from forebay.mixture.models.towers import Output, Tower


class Mixture(ParadigmModel):
    """Primus Alg. 1: batch trains the memory tower, stream the adapt tower, which answers."""

    def __init__(self, dense: int, stacks: Sequence[Stack], model: ModelSpec) -> None:
        """Draw both towers and one or two sets of tables."""
        super().__init__("mixture")
        self._spec = spec = model.mixture
        width = dense + sum(stack.width for stack in stacks)
        seed, rate = model.seed, model.dense_learning_rate
        memory_hidden, adapt_hidden = spec.memory_tower.hidden, spec.adapt_tower.hidden
        self._memory = Tower(width, memory_hidden, seed=seed, rate=rate)
        extra = _output_width(spec, (memory_hidden or [width])[-1])
        self._adapt = Tower(width, adapt_hidden, seed=seed, rate=rate, extra=extra)
        self._adapt_tables = Tables(stacks, seed, model.embedding_learning_rate)
        self._memory_tables = self._adapt_tables
        if spec.embeddings == "separate":
            self._memory_tables = Tables(stacks, seed, model.embedding_learning_rate)

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """Both towers and one or two sets of tables with their optimisers."""
        parts: dict[str, Tables | Tower] = {
            "embeddings": self._adapt_tables,
            "memory": self._memory,
            "adapt": self._adapt,
        }
        if self._memory_tables is not self._adapt_tables:
            parts["memory_embeddings"] = self._memory_tables
        return named_variables(parts)

    @property
    def served(self) -> list[tf.Variable]:
        """Both towers and every table."""
        tables = list(self._adapt_tables.tables)
        if self._memory_tables is not self._adapt_tables:
            tables += self._memory_tables.tables
        return [*tables, self._memory.weights, self._adapt.weights]

    def logits(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        """The adapt tower's answer, and the memory tower's own beside it."""
        features = inputs.features(self._adapt_tables.read(inputs.places))
        memory = self._remember(inputs, features)
        joined = tf.concat([features, self._gained(memory)], axis=1)
        adapt = self._adapt.forward(self._adapt.weights, joined)
        return {"score": adapt.logit, "memory": memory.logit}

    def learn(self, inputs: Inputs, labels: tf.Tensor, feed: Feed) -> tf.Tensor:
        """Batch rows move the memory tower, stream rows the adapt tower."""
        if feed == "batch":
            return self._learn_memory(inputs, labels)
        return self._learn_adapt(inputs, labels)

    def _learn_memory(self, inputs: Inputs, labels: tf.Tensor) -> tf.Tensor:
        read = self._memory_tables.read(inputs.places)
        weights = self._memory.weights.read_value()
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([weights, *read])
            logit = self._memory.forward(weights, inputs.features(read)).logit
            loss = mean_loss(labels, logit)
        gradient, *row_gradients = tape.gradient(loss, [weights, *read])
        self._memory.update(gradient)
        if self._spec.embeddings != "adapt_only":
            self._memory_tables.update(inputs.places, row_gradients)
        return checked(loss, gradient)

    def _learn_adapt(self, inputs: Inputs, labels: tf.Tensor) -> tf.Tensor:
        read = self._adapt_tables.read(inputs.places)
        weights = self._adapt.weights.read_value()
        # The memory weights are not watched: no stream gradient can move them.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([weights, *read])
            features = inputs.features(read)
            aux = self._gained(self._remember(inputs, features))
            if self._spec.stop_gradient == "output":
                aux = tf.stop_gradient(aux)
            logit = self._adapt.forward(weights, tf.concat([features, aux], axis=1)).logit
            loss = mean_loss(labels, logit)
        gradient, *row_gradients = tape.gradient(loss, [weights, *read])
        self._adapt.update(gradient)
        if self._spec.embeddings != "memory_only":
            self._adapt_tables.update(inputs.places, row_gradients)
        return checked(loss, gradient)

    def _remember(self, inputs: Inputs, features: tf.Tensor) -> Output:
        if self._memory_tables is not self._adapt_tables:
            features = inputs.features(self._memory_tables.read(inputs.places))
        return self._memory.forward(self._memory.weights, features)

    def _gained(self, memory: Output) -> tf.Tensor:
        logit = memory.logit[:, tf.newaxis]
        chosen = {"logit": [logit], "hidden": [memory.hidden], "both": [memory.hidden, logit]}
        return self._spec.gain * tf.concat(chosen[self._spec.memory_output], axis=1)


def _output_width(spec: MixtureSpec, hidden: int) -> int:
    return {"logit": 1, "hidden": hidden, "both": hidden + 1}[spec.memory_output]
