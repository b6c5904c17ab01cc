"""Losses for late labels: a stream row may be positive although it still says 0.

A stream publishes an event once, some time (the wait) after it happened, with the label as known
then. The batch data has the complete label of the same event later. Writing y for the complete
label, v for the stream's, f for the model's probability of y and q = P(v = 1 | y = 1, x, wait):

- Chapelle, "Modeling Delayed Feedback in Display Advertising" (KDD 2014): P(v = 1 | x) = f q and
  P(v = 0 | x) = 1 - f q (its Eq. 5 and 6 with q = 1 - exp(-lambda(x) wait), elapsed time for the
  wait). He fits f and lambda together, from the fresh rows alone; then only the exponential form
  separates f and q.
- `head` keeps his likelihood, BCE(v, f q), and takes q from a tower of its own (`delay_head`) that
  learns from batch rows whose y and v are both known: this allows any distribution of delays, and f
  has no part in q's gradient. Stream rows carry information about f in proportion to q.
- FNW, Ktena et al., "Addressing Delayed Feedback for Continuous Training with Neural Networks in
  CTR prediction" (RecSys 2019): each event is trained on as a negative immediately, and again as a
  positive if it turns out to be one. In that data, positives have the probability f / (1 + f), so
  rows are reweighted (its Eq. 11): positives by 1 + f, negatives by (1 - f)(1 + f), f in the
  weights without gradient. `fnw` does this: a stream row is a negative, one with v = 1 also a
  positive, and a batch row with y = 1 and v = 0 is the late positive. It needs neither wait nor q,
  but trains on a late positive only when it arrives in the batch data, say a day after the event.
- FNC of the same paper learns the biased probability b = f / (1 + f) without weights and answers
  f = b / (1 - b). Near b = 1/2 that is unstable, and a b above 1/2 has no f; not implemented.
- ES-DFM, Yang et al., "Capturing Delayed Feedback in Conversion Rate Prediction via Elapsed-Time
  Sampling" (AAAI 2021): waits before a row is published, as streams here do, and weights rows with
  two more towers, P(positive and late | x) and P(negative | v = 0, x). At a wait of zero it is FNW.
  Its first tower is f (1 - q): `head` has that one but not the second, since it needs no late
  copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

Q_LEAST, Q_MOST = 0.02, 0.9999


class RowLoss(NamedTuple):
    """What a model is to learn from a minibatch.

    rows: (logit float32[N]) -> loss of each row, float32[N]. part: bool[N], which rows take part;
    None for all of them. whole: the sum is divided by the number of all rows, not of those that
    take part, so that a few rows weigh as much as they would among others.
    """

    rows: Callable[[tf.Tensor], tf.Tensor]
    part: tf.Tensor | None = None
    whole: bool = False

    def among(self, rows: tf.Tensor) -> RowLoss:
        """The same for fewer rows: bool[N], those that may take part."""
        return self._replace(part=rows if self.part is None else self.part & rows)

    def mean(self, logit: tf.Tensor) -> tf.Tensor:
        if self.part is None:
            return tf.reduce_mean(self.rows(logit))
        # A row that takes no part may have any loss, and infinity times 0 is NaN.
        losses = tf.where(self.part, self.rows(logit), tf.zeros_like(logit))
        if self.whole:
            return tf.reduce_mean(losses)
        count = tf.reduce_sum(tf.cast(self.part, tf.float32))
        return tf.reduce_sum(losses) / tf.maximum(count, 1.0)


class LabelsLoss(NamedTuple):
    """What a model with an output for each label is to learn: the weighted sum over labels.

    losses: for some labels, with the place and the weight of each. Outputs do not depend on each
    other: a row trains those labels that it has. ESMM (Ma et al., SIGIR 2018) multiplies them
    instead, P(sale) = P(click) P(sale | click), to train on a label that only clicked rows have;
    here every row may have each label, so separate outputs suffice, and labels need no order.
    """

    losses: tuple[tuple[int, float, RowLoss], ...]

    @property
    def part(self) -> tf.Tensor | None:
        """bool[N], rows in which any label takes part; None for all of them."""
        parts = [loss.part for _, _, loss in self.losses]
        if any(part is None for part in parts):
            return None
        return tf.reduce_any(tf.stack(parts), axis=0)

    def mean(self, logit: tf.Tensor) -> tf.Tensor:
        """The sum of the labels' mean losses. logit: float32[N, L]."""
        return tf.add_n([weight * loss.mean(logit[:, at]) for at, weight, loss in self.losses])


Loss = RowLoss | LabelsLoss


def label_loss(labels: tf.Tensor) -> RowLoss:
    return RowLoss(
        lambda logit: tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logit)
    )


def share_loss(labels: tf.Tensor, known_share: tf.Tensor, least: float) -> RowLoss:
    """Cross entropy of the stream's label with f q (Chapelle's likelihood), in logits.

    known_share: q float32[N]; no gradient reaches it. least: rows with a smaller q take no part.
    """
    part = known_share >= least
    q = tf.stop_gradient(tf.clip_by_value(known_share, Q_LEAST, Q_MOST))

    def rows(logit: tf.Tensor) -> tf.Tensor:
        positive = tf.nn.softplus(-logit) - tf.math.log(q)
        # 1 - f q = (1 + (1 - q) exp(logit)) / (1 + exp(logit))
        negative = tf.nn.softplus(logit) - tf.nn.softplus(logit + tf.math.log1p(-q))
        return labels * positive + (1.0 - labels) * negative

    return RowLoss(rows, part)


def weighted_loss(labels: tf.Tensor) -> RowLoss:
    """FNW for stream rows: each is a negative, and also a positive if it is known to be one."""

    def rows(logit: tf.Tensor) -> tf.Tensor:
        f = tf.stop_gradient(tf.sigmoid(logit))
        as_negative = (1.0 - f) * (1.0 + f) * tf.nn.softplus(logit)
        return as_negative + labels * (1.0 + f) * tf.nn.softplus(-logit)

    return RowLoss(rows)


def late_positive_loss(labels: tf.Tensor, known: tf.Tensor) -> RowLoss:
    """FNW for batch rows: those that the stream had as negatives but that are positive.

    known: float32[N], see `Minibatch.known`; rows with NaN take no part.
    """

    def rows(logit: tf.Tensor) -> tf.Tensor:
        f = tf.stop_gradient(tf.sigmoid(logit))
        return (1.0 + f) * tf.nn.softplus(-logit)

    return RowLoss(rows, (labels > 0.5) & tf.equal(known, 0.0), whole=True)


def added(first: RowLoss, second: RowLoss) -> RowLoss:
    """The sum of both losses per row; a row with no part in the second has only the first."""

    def rows(logit: tf.Tensor) -> tf.Tensor:
        more = second.rows(logit)
        if second.part is not None:
            more = tf.where(second.part, more, tf.zeros_like(more))
        return first.rows(logit) + more

    return RowLoss(rows)
