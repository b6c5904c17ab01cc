"""The paradigm `mixture`: a memory tower and an adapt tower (Primus Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from forebay.config.specs.datasets import Feed
from forebay.config.specs.feeds import Phase
from forebay.config.specs.models import Delay, ModelSpec, Variant
from forebay.mixture.models.late.late_labels import Loss
from forebay.mixture.models.layers.embeddings import Stack, Tables
from forebay.mixture.models.layers.towers import MemoryInputs, Output, Tower
from forebay.mixture.models.paradigm import (
    Inputs,
    ParadigmModel,
    Parts,
    checked,
    named_variables,
    stepped,
    trained,
)


class Mixture(ParadigmModel):
    """Primus Alg. 1: batch trains the memory tower M, stream the adapt tower A, which answers.

        f(x) = sigmoid(A([E_A x, gain * stop_gradient(M(E_M x))]))      E: embeddings

    Beyond the algorithm as published (`mode: measured`), the adapt tower is also trained on the
    warm start's batch rows, and on stream rows of its last hours, whose batch rows come later, with
    its memory inputs off: at the end, it is the same model as `batch_then_stream`.
    """

    towers = ("memory",)

    def __init__(
        self,
        variant: Variant,
        delays: Sequence[Delay],
        dense: int,
        stacks: Sequence[Stack],
        model: ModelSpec,
    ) -> None:
        super().__init__(variant, delays)
        self._spec = spec = model.mixture
        width = dense + sum(stack.width for stack in stacks)
        seed, rate, labels = model.seed, model.dense_learning_rate, len(delays)
        hidden = spec.memory_tower.hidden
        self._memory = Tower(width, hidden, seed=seed, rate=rate, outputs=labels)
        last = (hidden or [width])[-1]
        extra = {"logit": labels, "hidden": last, "both": last + labels}[spec.memory_output]
        if spec.memory_embeddings:
            extra += width - dense
        self._zero = spec.memory_inputs == "zero"
        drawn = 0 if self._zero else extra
        self._adapt = Tower(
            width, spec.adapt_tower.hidden, seed=seed, rate=rate, extra=drawn, outputs=labels
        )
        self._inputs = MemoryInputs(extra - drawn, self._adapt.first_width, rate=rate)
        self._dense, self._extra = dense, extra
        self._adapt_tables = Tables(stacks, seed, model.embedding_learning_rate)
        self._memory_tables = self._adapt_tables
        self._apart = spec.mode == "measured" and spec.embeddings in {"separate", "memory_only"}
        if spec.embeddings == "separate":
            self._memory_tables = Tables(stacks, seed, model.embedding_learning_rate)

    @property
    def variables(self) -> dict[str, tf.Variable]:
        parts: dict[str, Tables | Tower | MemoryInputs] = {
            "embeddings": self._adapt_tables,
            "memory": self._memory,
            "adapt": self._adapt,
        }
        if self._zero:
            parts["inputs"] = self._inputs
        if self._memory_tables is not self._adapt_tables:
            parts["memory_embeddings"] = self._memory_tables
        return named_variables(parts)

    @property
    def served(self) -> list[tf.Variable]:
        tables = list(self._adapt_tables.tables)
        if self._memory_tables is not self._adapt_tables:
            tables += self._memory_tables.tables
        return [*tables, self._memory.weights, self._adapt.weights, self._inputs.weights]

    def parts(self, feed: Feed, phase: Phase) -> Parts:
        """Batch rows train the memory tower, stream rows the adapt tower, plus what is declared.

        `alone` is the adapt tower with its memory inputs off.
        """
        warm = phase != "window" and self._spec.mode == "measured"
        if feed == "stream":
            if warm:
                return (("alone", self.each("fresh")),) if phase == "warm_start_end" else ()
            return (("adapt", self.each("fresh")),)
        memory = ("memory", self.each("complete"))
        if warm:
            return (memory, ("alone", self.each("complete")))
        lessons = [
            self.batch_lesson(delay, phase, complete=self._spec.adapt_learns_both(delay))
            for delay in self.delays
        ]
        return (memory, *((("adapt", tuple(lessons)),) if any(lessons) else ()))

    def logits(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        features = inputs.features(self._adapt_tables.read(inputs.places))
        remembered, read = self._remember(inputs, features)
        side = self._side(remembered, read)
        adapt = self._adapting(self._adapt.weights, self._inputs.weights, features, side)
        return {"score": adapt, "memory": remembered.logit}

    def reference_logit(self, inputs: Inputs) -> tf.Tensor | None:
        """The memory tower's logit, if no stream gradient changes its rows."""
        if not self._apart:
            return None
        features = inputs.features(self._memory_tables.read(inputs.places))
        return self._memory.forward(self._memory.weights, features).logit

    @property
    def reference_served(self) -> list[tf.Variable]:
        return [*self._memory_tables.tables, self._memory.weights] if self._apart else []

    def learn(self, inputs: Inputs, losses: Mapping[str, Loss]) -> tf.Tensor:
        """Train what has a loss: adapt first, since by then memory would already know the rows."""
        found = {}
        for part in ("adapt", "alone"):
            if part in losses:
                found[part] = self._stepped_adapt(inputs, losses[part], alone=part == "alone")
        rows = losses.get("memory")
        if rows is not None:
            both = self._spec.embeddings != "adapt_only"
            found["memory"] = trained(
                self._memory, self._memory_tables, inputs, rows, with_tables=both
            )
        return found[next(iter(losses))]

    def _stepped_adapt(self, inputs: Inputs, rows: Loss, *, alone: bool) -> tf.Tensor:
        return stepped(rows, lambda: self._learn_adapt(inputs, rows, alone=alone))

    def _learn_adapt(self, inputs: Inputs, rows: Loss, *, alone: bool) -> tf.Tensor:
        read = self._adapt_tables.read(inputs.places)
        weights, reading = self._adapt.weights.read_value(), self._inputs.weights.read_value()
        # The memory weights are not watched: no stream gradient can change them.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([weights, reading, *read])
            features = inputs.features(read)
            side = None if alone else self._side(*self._remember(inputs, features))
            if side is not None and self._spec.stop_gradient == "output":
                side = tf.stop_gradient(side)
            loss = rows.mean(self._adapting(weights, reading, features, side))
        wanted = [weights, *read] if alone or not self._zero else [weights, *read, reading]
        gradient, *others = tape.gradient(loss, wanted)
        self._adapt.update(gradient)
        if len(others) > len(read):
            self._inputs.update(others.pop())
        if self._spec.embeddings != "memory_only":
            self._adapt_tables.update(inputs.places, others)
        return checked(loss, gradient)

    def _adapting(
        self, weights: tf.Tensor, reading: tf.Tensor, features: tf.Tensor, side: tf.Tensor | None
    ) -> tf.Tensor:
        """The adapt tower's logit, given its weights; without `side`, memory inputs are off."""
        if self._zero:
            added = None if side is None else self._inputs.forward(reading, side)
            return self._adapt.forward(weights, features, added).logit
        if side is None:
            side = tf.zeros([tf.shape(features)[0], self._extra])
        return self._adapt.forward(weights, tf.concat([features, side], axis=1)).logit

    def _remember(self, inputs: Inputs, features: tf.Tensor) -> tuple[Output, tf.Tensor]:
        """The memory tower's output, and the features that it read."""
        if self._memory_tables is not self._adapt_tables:
            features = inputs.features(self._memory_tables.read(inputs.places))
        return self._memory.forward(self._memory.weights, features), features

    def _side(self, output: Output, features: tf.Tensor) -> tf.Tensor:
        """What the adapt tower reads from the memory: float32[N, extra]."""
        logit = output.logit[:, tf.newaxis] if len(self.delays) == 1 else output.logit
        chosen = {"logit": [logit], "hidden": [output.hidden], "both": [output.hidden, logit]}
        side = self._spec.gain * tf.concat(chosen[self._spec.memory_output], axis=1)
        if self._spec.memory_embeddings:
            side = tf.concat([side, features[:, self._dense :]], axis=1)
        return side
