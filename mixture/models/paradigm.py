"""What all paradigms share, and those with one tower: all but `mixture`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import tensorflow as tf

from forebay.config.specs.datasets import Feed
from forebay.config.specs.feeds import Phase, learns_from
from forebay.config.specs.models import Delay, ModelSpec, Variant
from forebay.mixture.models.late.late_labels import Loss
from forebay.mixture.models.layers.embeddings import Place, Stack, Tables
from forebay.mixture.models.layers.towers import MemoryInputs, Tower

# The labels that a part of a model is trained on: of batch rows, the complete ones, those of
# positives that the stream had as negatives (FNW), or both; of stream rows, the fresh ones.
Lesson = Literal["complete", "late", "complete and late", "fresh"]
# The parts that a minibatch trains, and on what for each label; a paradigm with one tower has only
# the part `tower`.
Parts = tuple[tuple[str, tuple[Lesson | None, ...]], ...]


class Inputs(NamedTuple):
    """Tensors of one minibatch that every paradigm reads."""

    dense: tf.Tensor
    places: Sequence[Place]

    def features(self, read: Sequence[tf.Tensor]) -> tf.Tensor:
        """Dense features and embeddings side by side."""
        pooled = [place.pooled(rows) for place, rows in zip(self.places, read, strict=True)]
        return tf.concat([self.dense, *pooled], axis=1)


class ParadigmModel(ABC):
    """One variant's model. towers: names of what `logits` returns besides `score`."""

    towers: Sequence[str] = ()

    def __init__(self, variant: Variant, delays: Sequence[Delay]) -> None:
        """delays: how it corrects each label; as many as it has outputs."""
        self.variant = variant
        self.delays = tuple(delays)
        self.name = variant.name

    def parts(self, feed: Feed, phase: Phase) -> Parts:
        """What a minibatch of this feed trains; nothing if the model does not use it."""
        fits = learns_from(self.variant.paradigm, feed, phase)
        if feed == "stream":
            return (("tower", self.each("fresh")),) if fits else ()
        lessons = [self.batch_lesson(delay, phase, complete=fits) for delay in self.delays]
        return (("tower", tuple(lessons)),) if any(lessons) else ()

    def each(self, lesson: Lesson) -> tuple[Lesson, ...]:
        return (lesson,) * len(self.delays)

    def batch_lesson(self, delay: Delay, phase: Phase, *, complete: bool) -> Lesson | None:
        """What a part that stream rows train learns from batch rows. complete: their labels too."""
        # Batch rows of the warm start's end are copies of stream rows published before its end.
        then: Phase = "warm_start" if phase == "warm_start_end" else phase
        stream = learns_from(self.variant.paradigm, "stream", then)
        if delay == "fnw" and stream:
            return "complete and late" if complete else "late"
        return "complete" if complete else None

    @property
    @abstractmethod
    def variables(self) -> dict[str, tf.Variable]:
        """Everything that a checkpoint holds, by name."""

    @property
    @abstractmethod
    def served(self) -> list[tf.Variable]:
        """The variables that `logits` reads."""

    @abstractmethod
    def logits(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        """The answer as `score`; further towers under their own names.

        float32[N] each; float32[N, L] for several labels.
        """

    def reference_logit(self, inputs: Inputs) -> tf.Tensor | None:
        """The logit of a tower that is trained only on batch rows; None if there is none."""
        del inputs
        return None

    @property
    def reference_served(self) -> list[tf.Variable]:
        """The variables that `reference_logit` reads."""
        return []

    @abstractmethod
    def learn(self, inputs: Inputs, losses: Mapping[str, Loss]) -> tf.Tensor:
        """One step of these parts, by their losses. Returns the first one's mean loss before it."""


def stepped(loss: Loss, step: Callable[[], tf.Tensor]) -> tf.Tensor:
    """The result of `step`; 0 if no row takes part: then nothing changes, not even optimisers."""
    if loss.part is None:
        return step()
    return tf.cond(tf.reduce_any(loss.part), step, lambda: tf.constant(0.0))


def checked(loss: tf.Tensor, gradient: tf.Tensor) -> tf.Tensor:
    """The loss, or NaN if the gradient is not finite: a ReLU can hide a NaN from the loss."""
    sound = tf.math.is_finite(tf.reduce_sum(gradient))
    return tf.where(sound, loss, float("nan"))


def trained(
    tower: Tower, tables: Tables, inputs: Inputs, rows: Loss, *, with_tables: bool = True
) -> tf.Tensor:
    """Update a tower and the rows that it reads by one step; the mean loss before it."""
    read = tables.read(inputs.places)
    weights = tower.weights.read_value()
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([weights, *read])
        logit = tower.forward(weights, inputs.features(read)).logit
        loss = rows.mean(logit)
    gradient, *row_gradients = tape.gradient(loss, [weights, *read])
    tower.update(gradient)
    if with_tables:
        tables.update(inputs.places, row_gradients)
    return checked(loss, gradient)


def named_variables(parts: Mapping[str, Tables | Tower | MemoryInputs]) -> dict[str, tf.Variable]:
    return {
        f"{part}_{name}": variable
        for part, owner in parts.items()
        for name, variable in owner.variables.items()
    }


class SingleTower(ParadigmModel):
    """One tower on one set of tables: `batch`, `stream`, `batch_then_stream` and `mixed`.

    They differ in the minibatches that they take.
    """

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
