"""SeedModels: all variants of one seed, with the delay head and the guard that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from forebay.config.datasets import Feed
from forebay.config.models import ModelSpec, Variant
from forebay.mixture.models.late.delay_head import DelayHead, DelayRows
from forebay.mixture.models.late.guard import Guard
from forebay.mixture.models.late.late_labels import (
    RowLoss,
    added,
    label_loss,
    late_positive_loss,
    share_loss,
    weighted_loss,
    without,
)
from forebay.mixture.models.layers.embeddings import Stack
from forebay.mixture.models.paradigm import Inputs, Lesson, ParadigmModel, Parts
from forebay.mixture.models.paradigms import make_paradigm


class Stepped(NamedTuple):
    """What one variant did with a minibatch.

    loss: float32, 0 where nothing was learnt. learnt, masked, paused: bool[N], rows that it learnt
    from, those whose label says too little, and those that the guard held.
    """

    loss: tf.Tensor
    learnt: tf.Tensor
    masked: tf.Tensor
    paused: tf.Tensor


class SeedModels:
    """Every model of one seed.

    A tower that batch rows alone train is the guard's reference: a mixture's memory tower whose
    rows no stream gradient moves, or the paradigm `batch`. Without one there is no guard.
    """

    def __init__(
        self,
        variants: Sequence[Variant],
        dense: int,
        stacks: Sequence[Stack],
        model: ModelSpec,
        source_count: int,
        *,
        guard: bool,
    ) -> None:
        """Draw every variant's weights from the model's seed, all from the same."""
        self.models = [make_paradigm(each, dense, stacks, model) for each in variants]
        heads = any(each.delay == "head" for each in variants)
        self.head = DelayHead(dense, stacks, model) if heads else None
        self._reference = _reference(self.models)
        watched = guard and self._reference is not None
        self.guarded = [watched and each.paradigm != "batch" for each in variants]
        self.guard = Guard(source_count) if any(self.guarded) else None

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """Everything that a checkpoint holds, by name."""
        found = {f"{m.name}_{name}": v for m in self.models for name, v in m.variables.items()}
        head = {} if self.head is None else self.head.variables
        return found | {f"delay_head_{name}": each for name, each in head.items()} | self.resettable

    @property
    def resettable(self) -> dict[str, tf.Variable]:
        """Those that a checkpoint need not hold: a guard may be switched on and off."""
        guard = {} if self.guard is None else self.guard.variables
        return {f"guard_{name}": each for name, each in guard.items()}

    def served(self, place: int) -> list[tf.Variable]:
        """The variables that `answers` of one variant reads; the delay head's are none."""
        served = list(self.models[place].served)
        if self.guard is not None and self._reference is not None and self.guarded[place]:
            served += [*self.guard.serving, *self._reference.reference_served]
        return list({id(each): each for each in served}.values())

    def parts(self, feed: Feed, *, warm_start: bool) -> tuple[Parts, ...]:
        """What a minibatch moves of each variant."""
        return tuple(each.parts(feed, warm_start=warm_start) for each in self.models)

    def answers(
        self, inputs: Inputs, places: Sequence[int] | None = None
    ) -> list[dict[str, tf.Tensor]]:
        """Logits of variants by name, of all or of those at some places.

        While all sources of the stream are paused, memory answers as `score`: what a model is asked
        does not say which source it will come from, and while one of them is sound it is learnt.
        """
        chosen = range(len(self.models)) if places is None else places
        found = [self.models[place].logits(inputs) for place in chosen]
        if self.guard is None or self._reference is None:
            return found
        known, paused = self._reference.reference_logit(inputs), self.guard.holds_all()
        for logits, place in zip(found, chosen, strict=True):
            if self.guarded[place]:
                logits["score"] = tf.where(paused, known, logits["score"])
        return found

    def learn(
        self,
        inputs: Inputs,
        labels: tf.Tensor,
        delays: DelayRows,
        sources: tf.Tensor,
        feed: Feed,
        parts: Sequence[Parts],
    ) -> tuple[list[Stepped], tf.Tensor]:
        """One step of every variant, in order, and of the delay head.

        Returns:
            What the variants did, nothing where they have no part; and the delay head's loss, 0
            where it learnt nothing.
        """
        fresh = feed == "stream" and any(parts)
        q = self.head.known_share(inputs, delays) if self.head is not None and fresh else None
        held = self._observe(inputs, labels, sources, q) if fresh else None
        lessons = _Lessons(labels, delays, q, 0.0 if self.head is None else self.head.q_min)
        found = [
            self._learn(place, inputs, lessons, held, moved) for place, moved in enumerate(parts)
        ]
        loss = tf.constant(0.0)
        if self.head is not None and feed == "batch":
            loss = self.head.learn(inputs, labels, delays)
        return found, loss

    def _learn(
        self,
        place: int,
        inputs: Inputs,
        lessons: _Lessons,
        held: tf.Tensor | None,
        parts: Parts,
    ) -> Stepped:
        none = tf.zeros_like(lessons.labels, tf.bool)
        if not parts:
            return Stepped(tf.constant(0.0), none, none, none)
        model = self.models[place]
        losses = {part: lessons.loss(model.variant, lesson) for part, lesson in parts}
        taken = _taken(list(losses.values()), none)
        masked = none if lessons.q is None else ~taken

        if held is None or not self.guarded[place]:
            return Stepped(model.learn(inputs, losses), taken, masked, none)
        left = {part: without(loss, held) for part, loss in losses.items()}
        return Stepped(model.learn(inputs, left), taken & ~held, masked & ~held, held)

    def _observe(
        self, inputs: Inputs, labels: tf.Tensor, sources: tf.Tensor, q: tf.Tensor | None
    ) -> tf.Tensor | None:
        """Which rows the guard holds, bool[N]; None without one."""
        if self.guard is None or self._reference is None:
            return None
        expected = tf.sigmoid(self._reference.reference_logit(inputs))
        return self.guard.observe(labels, expected if q is None else expected * q, sources)


class _Lessons(NamedTuple):
    """The rows of a minibatch as losses. q: see `DelayHead.known_share`; None of batch rows."""

    labels: tf.Tensor
    delays: DelayRows
    q: tf.Tensor | None
    q_min: float

    def loss(self, variant: Variant, lesson: Lesson) -> RowLoss:
        """What a variant's part learns."""
        kinds: dict[Lesson, Callable[[], RowLoss]] = {
            "complete": lambda: label_loss(self.labels),
            "late": self._late,
            "complete and late": lambda: added(label_loss(self.labels), self._late()),
            "fresh": lambda: self._fresh(variant),
        }
        return kinds[lesson]()

    def _fresh(self, variant: Variant) -> RowLoss:
        if variant.delay == "fnw":
            return weighted_loss(self.labels)
        if variant.delay == "head" and self.q is not None:
            return share_loss(self.labels, self.q, self.q_min)
        return label_loss(self.labels)

    def _late(self) -> RowLoss:
        return late_positive_loss(self.labels, self.delays.known)


def _reference(models: Sequence[ParadigmModel]) -> ParadigmModel | None:
    """The model with a tower that only batch rows train; a mixture's memory before `batch`."""
    able = [model for model in models if model.reference_served]
    return min(able, key=lambda model: model.variant.paradigm != "mixture", default=None)


def _taken(losses: Sequence[RowLoss], none: tf.Tensor) -> tf.Tensor:
    """bool[N]: rows that any part learns from."""
    parts = [loss.part for loss in losses]
    if any(part is None for part in parts):
        return ~none
    taken = none
    for part in parts:
        taken |= part
    return taken
