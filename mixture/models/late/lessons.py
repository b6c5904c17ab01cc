"""Lessons: the rows of a minibatch as losses of one label, and of several labels together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from forebay.config.specs.models import Delay
from forebay.mixture.models.late.delay_head import DelayRows
from forebay.mixture.models.late.late_labels import (
    LabelsLoss,
    Loss,
    RowLoss,
    added,
    label_loss,
    late_positive_loss,
    share_loss,
    weighted_loss,
)
from forebay.mixture.models.paradigm import Lesson


class LabelTensors(NamedTuple):
    """What the rows of a minibatch say about one label.

    labels: float32[N], 0 where a row lacks it. delays: see `DelayRows`. said: bool[N], which rows
    have it; None for a single label, which all rows have.
    """

    labels: tf.Tensor
    delays: DelayRows
    said: tf.Tensor | None = None

    @classmethod
    def of(cls, labels: tf.Tensor, waits: tf.Tensor, known: tf.Tensor) -> list[LabelTensors]:
        """One for each label. All three are float32[N] for one label, float32[N, L] for several."""
        if labels.shape.rank == 1:
            return [cls(labels, DelayRows(waits, known))]
        each = zip(*(tf.unstack(one, axis=1) for one in (labels, waits, known)), strict=True)
        return [cls._several(values, DelayRows(*delays)) for values, *delays in each]

    @classmethod
    def _several(cls, labels: tf.Tensor, delays: DelayRows) -> LabelTensors:
        said = ~tf.math.is_nan(labels)
        return cls(tf.where(said, labels, tf.zeros_like(labels)), delays, said)


class Lessons(NamedTuple):
    """What one label contributes to a step.

    q: see `DelayHead.known_share`; None for batch rows and without a head. q_min: rows with a
    smaller q take no part. held: bool[N], rows that a guard holds; None without a guard.
    """

    rows: LabelTensors
    q: tf.Tensor | None
    q_min: float
    held: tf.Tensor | None

    def loss(self, delay: Delay, lesson: Lesson) -> RowLoss:
        """The loss of a part of a model for this label. delay: how the model corrects the label."""
        kinds: dict[Lesson, Callable[[], RowLoss]] = {
            "complete": lambda: label_loss(self.rows.labels),
            "late": self._late,
            "complete and late": lambda: added(label_loss(self.rows.labels), self._late()),
            "fresh": lambda: self._fresh(delay),
        }
        found = kinds[lesson]()
        return found if self.rows.said is None else found.among(self.rows.said)

    def _fresh(self, delay: Delay) -> RowLoss:
        if delay == "fnw":
            return weighted_loss(self.rows.labels)
        if delay == "head" and self.q is not None:
            return share_loss(self.rows.labels, self.q, self.q_min)
        return label_loss(self.rows.labels)

    def _late(self) -> RowLoss:
        return late_positive_loss(self.rows.labels, self.rows.delays.known)


def together(losses: Sequence[RowLoss | None], weights: Sequence[float]) -> Loss:
    """The loss of a part of a model. losses: for each label; None if it has none."""
    if len(losses) == 1 and losses[0] is not None:
        return losses[0]
    each = enumerate(zip(weights, losses, strict=True))
    return LabelsLoss(tuple((at, weight, one) for at, (weight, one) in each if one is not None))


def taken(losses: Sequence[RowLoss], none: tf.Tensor) -> tf.Tensor:
    """bool[N]: rows of one label that any part is trained on. none: bool[N], all False."""
    parts = [loss.part for loss in losses]
    if any(part is None for part in parts):
        return ~none
    found = none
    for part in parts:
        found |= part
    return found
