"""SeedModels: all variants of one seed, with the delay heads and the guards that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from forebay.config.specs.datasets import Feed
from forebay.config.specs.feeds import Phase
from forebay.config.specs.labels import LabelSpec, delay_of
from forebay.config.specs.models import ModelSpec, Variant
from forebay.mixture.models.late.delay_head import DelayHead
from forebay.mixture.models.late.guard import Guard
from forebay.mixture.models.late.late_labels import RowLoss
from forebay.mixture.models.late.lessons import LabelTensors, Lessons, taken, together
from forebay.mixture.models.layers.embeddings import Stack
from forebay.mixture.models.memory_adapt import Mixture
from forebay.mixture.models.paradigm import Inputs, ParadigmModel, Parts, SingleTower


class Rows(NamedTuple):
    """Rows of a minibatch, bool[N] each.

    learnt: trained on. masked: their label says too little. paused: the guard held them.
    """

    learnt: tf.Tensor
    masked: tf.Tensor
    paused: tf.Tensor


class Stepped(NamedTuple):
    """What one variant did with a minibatch.

    loss: float32, the weighted sum over labels, 0 if nothing was trained on. rows: what happened to
    each. by_label: the same for each of several labels; a row counts as learnt if it was for any.
    """

    loss: tf.Tensor
    rows: Rows
    by_label: tuple[Rows, ...] = ()


class SeedStepped(NamedTuple):
    """What the models of one seed did with a minibatch.

    models: the variants in order, empty if they have no part. head_loss: float32, the sum of the
    delay heads' losses, 0 if they were not trained. held: bool[N, labels], rows that the guards
    held; [N, 0] without a guard.
    """

    models: list[Stepped]
    head_loss: tf.Tensor
    held: tf.Tensor


class SeedModels:
    """Every model of one seed.

    A tower that is trained only on batch rows is the guards' reference: a mixture's memory tower
    whose rows no stream gradient changes, or the paradigm `batch`. Without one there is no guard.
    Each label has its own delay head and guard.
    """

    def __init__(
        self,
        variants: Sequence[Variant],
        labels: Mapping[str, LabelSpec],
        dense: int,
        stacks: Sequence[Stack],
        model: ModelSpec,
        source_count: int,
        *,
        guard: bool,
    ) -> None:
        """Draw every variant's weights, all from the model's seed."""
        self._labels = list(labels)
        self._weights = [label.share_of_loss for label in labels.values()]
        delays = [[delay_of(label, each) for label in labels.values()] for each in variants]
        self.models: list[ParadigmModel] = [
            Mixture(each, of_labels, dense, stacks, model)
            if each.paradigm == "mixture"
            else SingleTower(each, of_labels, dense, stacks, model)
            for each, of_labels in zip(variants, delays, strict=True)
        ]
        self.heads = [
            DelayHead(dense, stacks, model) if "head" in of_variants else None
            for of_variants in zip(*delays, strict=True)
        ]
        self._reference = _reference(self.models)
        watched = guard and self._reference is not None
        self.guarded = [watched and each.paradigm != "batch" for each in variants]
        self.guards = [Guard(source_count) for _ in labels] if any(self.guarded) else []

    @property
    def variables(self) -> dict[str, tf.Variable]:
        found = {f"{m.name}_{name}": v for m in self.models for name, v in m.variables.items()}
        for label, head in zip(self._labels, self.heads, strict=True):
            variables = {} if head is None else head.variables
            prefix = f"delay_head_{label}_" if label else "delay_head_"
            found |= {f"{prefix}{name}": each for name, each in variables.items()}
        return found | self.resettable

    @property
    def resettable(self) -> dict[str, tf.Variable]:
        """Those that a checkpoint need not hold: a guard may be turned on and off."""
        # No name has a colon: `click` has `usual_observed`, and `click_usual` has `observed`.
        return {
            f"guard_{label}:{name}" if label else f"guard_{name}": each
            for label, guard in zip(self._labels, self.guards, strict=False)
            for name, each in guard.variables.items()
        }

    def served(self, place: int) -> list[tf.Variable]:
        """The variables that `answers` of one variant reads; it reads none of the delay heads'."""
        served = list(self.models[place].served)
        if self._reference is not None and self.guarded[place]:
            served += [each for guard in self.guards for each in guard.serving]
            served += self._reference.reference_served
        return list({id(each): each for each in served}.values())

    def parts(self, feed: Feed, phase: Phase) -> tuple[Parts, ...]:
        return tuple(each.parts(feed, phase) for each in self.models)

    def answers(
        self, inputs: Inputs, places: Sequence[int] | None = None
    ) -> list[dict[str, tf.Tensor]]:
        """Logits of variants by name, for all or for those at some places; see `logits`.

        While all sources of the stream are paused for a label, memory answers it as `score`: a
        request does not say which source it belongs to, and as long as one of them is sound, the
        label is still trained on.
        """
        chosen = range(len(self.models)) if places is None else places
        found = [self.models[place].logits(inputs) for place in chosen]
        guarded = [logits for logits, at in zip(found, chosen, strict=True) if self.guarded[at]]
        # A served graph must not even read variables of a reference that it does not use.
        if not self.guards or self._reference is None or not guarded:
            return found
        known = self._reference.reference_logit(inputs)
        paused = self.guards[0].holds_all()
        if len(self.guards) > 1:
            paused = tf.stack([guard.holds_all() for guard in self.guards])
        for logits in guarded:
            logits["score"] = tf.where(paused, known, logits["score"])
        return found

    def learn(
        self,
        inputs: Inputs,
        labels: Sequence[LabelTensors],
        sources: tf.Tensor,
        feed: Feed,
        parts: Sequence[Parts],
    ) -> SeedStepped:
        fresh = feed == "stream" and any(parts)
        q = [
            head.known_share(inputs, rows.delays) if head is not None and fresh else None
            for head, rows in zip(self.heads, labels, strict=True)
        ]
        held = self._observe(inputs, labels, sources, q) if fresh else [None for _ in labels]
        lessons = [
            Lessons(rows, share, 0.0 if head is None else head.q_min, guarded)
            for rows, share, head, guarded in zip(labels, q, self.heads, held, strict=True)
        ]
        found = [self._learn(place, inputs, lessons, moved) for place, moved in enumerate(parts)]
        losses = [
            head.learn(inputs, rows.labels, rows.delays)
            for head, rows in zip(self.heads, labels, strict=True)
            if head is not None and feed == "batch"
        ]
        whole = tf.add_n(losses) if losses else tf.constant(0.0)
        each = [one for one in held if one is not None]
        return SeedStepped(
            found, whole, tf.stack(each, axis=1) if each else self.holds_none(sources)
        )

    def holds_none(self, sources: tf.Tensor) -> tf.Tensor:
        """`SeedStepped.held` for rows that no guard has checked. sources: int32[N]."""
        return tf.zeros([tf.shape(sources)[0], len(self.guards)], tf.bool)

    def _learn(
        self, place: int, inputs: Inputs, lessons: Sequence[Lessons], parts: Parts
    ) -> Stepped:
        none = tf.zeros_like(lessons[0].rows.labels, tf.bool)
        if not parts:
            nothing = Rows(none, none, none)
            by_label = tuple(nothing for _ in lessons) if len(lessons) > 1 else ()
            return Stepped(tf.constant(0.0), nothing, by_label)
        if len(lessons) > 1:
            return self._learn_several(place, inputs, lessons, parts, none)
        model, (one,) = self.models[place], lessons
        delay, held = model.delays[0], one.held
        losses = {part: one.loss(delay, lesson) for part, (lesson,) in parts if lesson}
        learnt = taken(list(losses.values()), none)
        masked = none if one.q is None else ~learnt
        if held is None or not self.guarded[place]:
            return Stepped(model.learn(inputs, losses), Rows(learnt, masked, none))
        left = {part: loss.among(~held) for part, loss in losses.items()}
        return Stepped(model.learn(inputs, left), Rows(learnt & ~held, masked & ~held, held))

    def _learn_several(
        self, place: int, inputs: Inputs, lessons: Sequence[Lessons], parts: Parts, none: tf.Tensor
    ) -> Stepped:
        """Like `_learn`: a label that a guard holds, or that a row lacks, takes no part."""
        model = self.models[place]
        losses: dict[str, list[RowLoss | None]] = {part: [] for part, _ in parts}
        by_label = []
        for at, (one, delay) in enumerate(zip(lessons, model.delays, strict=True)):
            said = none if one.rows.said is None else one.rows.said
            held = none
            if one.held is not None and self.guarded[place]:
                held = said & one.held
            for part, each in parts:
                lesson = each[at]
                loss = one.loss(delay, lesson).among(~held) if lesson else None
                losses[part].append(loss)
            mine = [each[-1] for each in losses.values()]
            learnt = taken([loss for loss in mine if loss is not None], none)
            masked = none if one.q is None else said & ~learnt & ~held
            by_label.append(Rows(learnt, masked, held))
        loss = model.learn(
            inputs, {part: together(each, self._weights) for part, each in losses.items()}
        )
        return Stepped(loss, _of_any(by_label), tuple(by_label))

    def _observe(
        self,
        inputs: Inputs,
        labels: Sequence[LabelTensors],
        sources: tf.Tensor,
        q: Sequence[tf.Tensor | None],
    ) -> list[tf.Tensor | None]:
        """Which rows the guard of each label holds, bool[N]; None if there is no guard."""
        if not self.guards or self._reference is None:
            return [None for _ in labels]
        expected = tf.sigmoid(self._reference.reference_logit(inputs))
        each = [expected] if len(labels) == 1 else tf.unstack(expected, axis=1)
        found: list[tf.Tensor | None] = []
        for guard, rows, own, share in zip(self.guards, labels, each, q, strict=True):
            seen = own if share is None else own * share
            found.append(guard.observe(rows.labels, seen, sources, rows.said))
        return found


def _of_any(by_label: Sequence[Rows]) -> Rows:
    """Rows of a variant by the fate of their labels: learnt for any, else held, else masked."""
    learnt, masked, paused = (
        tf.reduce_any(tf.stack(each), axis=0) for each in zip(*by_label, strict=True)
    )
    paused &= ~learnt
    return Rows(learnt, masked & ~learnt & ~paused, paused)


def _reference(models: Sequence[ParadigmModel]) -> ParadigmModel | None:
    """The model with a tower that only batch rows train; a mixture's memory rather than `batch`."""
    able = [model for model in models if model.reference_served]
    return min(able, key=lambda model: model.variant.paradigm != "mixture", default=None)
