"""Lessons: the rows of a minibatch as losses of one label, and of several labels together."""

from __future__ import annotations

from collections.abc import Sequence
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
        found = []
        each = zip(*(tf.unstack(one, axis=1) for one in (labels, waits, known)), strict=True)
        for values, *delays in each:
            said = ~tf.math.is_nan(values)
            zeroed = tf.where(said, values, tf.zeros_like(values))
            found.append(cls(zeroed, DelayRows(*delays), said))
        return found


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
        labels, known = self.rows.labels, self.rows.delays.known
        if lesson == "late":
            found = late_positive_loss(labels, known)
        elif lesson == "complete and late":
            found = added(label_loss(labels), late_positive_loss(labels, known))
        elif lesson == "fresh" and delay == "fnw":
            found = weighted_loss(labels)
        elif lesson == "fresh" and delay == "head" and self.q is not None:
            found = share_loss(labels, self.q, self.q_min)
        else:
            found = label_loss(labels)
        return found if self.rows.said is None else found.among(self.rows.said)


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
