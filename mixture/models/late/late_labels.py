"""Losses for labels that are late: a stream row may be positive although it says 0 still.

A stream publishes an event once, some time (the wait) after it happened, with the label as known
then. The batch brings the complete label of the same event later. Writing y for the complete
label, v for the stream's, f for the model's probability of y and q = P(v = 1 | y = 1, x, wait):

- Chapelle, "Modeling Delayed Feedback in Display Advertising" (KDD 2014): P(v = 1 | x) = f q and
  P(v = 0 | x) = 1 - f q (its Eq. 5 and 6 with q = 1 - exp(-lambda(x) wait), elapsed time for the
  wait). He fits f and lambda together, from the fresh rows alone; f and q are then told apart by
  the exponential form only.
- `head` keeps his likelihood, BCE(v, f q), and takes q from a tower of its own (`delay_head`) that
  learns from batch rows whose y and v are both known: any distribution of delays, and f has no
  share in q's gradient. Stream rows carry information about f in proportion to q.
- FNW, Ktena et al., "Addressing Delayed Feedback for Continuous Training with Neural Networks in
  CTR prediction" (RecSys 2019): each event is learnt as a negative at once and once more as a
  positive when it turns out to be one. That data has positives with probability f / (1 + f), so
  rows are weighted back (its Eq. 11): positives by 1 + f, negatives by (1 - f)(1 + f), f in the
  weights without gradient. `fnw` does so: a stream row is a negative, one with v = 1 a positive
  beside it, and a batch row with y = 1 and v = 0 the late positive. It needs no wait and no q, and
  learns a late positive only when the batch brings it, a day after the event, say.
- FNC of the same paper learns the biased probability b = f / (1 + f) without weights and answers
  f = b / (1 - b). Near b = 1/2 that is unstable, and a probability above it has no f; left out.
- ES-DFM, Yang et al., "Capturing Delayed Feedback in Conversion Rate Prediction via Elapsed-Time
  Sampling" (AAAI 2021): waits before a row is published, as streams here do, and weights with two
  more towers, P(positive and late | x) and P(negative | v = 0, x). At a wait of zero it is FNW.
  Its first tower is f (1 - q): `head` has that without the second, since it needs no late copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

Q_LEAST, Q_MOST = 0.02, 0.9999


class RowLoss(NamedTuple):
    """What a model has to learn from a minibatch.

    rows: (logit float32[N]) -> loss of each row, float32[N]. part: bool[N], which rows take part;
    None for all of them. whole: the sum is divided by all rows, not by those that take part, so
    that few rows weigh as much as among others.
    """

    rows: Callable[[tf.Tensor], tf.Tensor]
    part: tf.Tensor | None = None
    whole: bool = False

    def mean(self, logit: tf.Tensor) -> tf.Tensor:
        """Mean loss of the rows that take part."""
        if self.part is None:
            return tf.reduce_mean(self.rows(logit))
        # A row that takes no part may have any loss, and infinity times 0 is none.
        losses = tf.where(self.part, self.rows(logit), tf.zeros_like(logit))
        if self.whole:
            return tf.reduce_mean(losses)
        count = tf.reduce_sum(tf.cast(self.part, tf.float32))
        return tf.reduce_sum(losses) / tf.maximum(count, 1.0)


def label_loss(labels: tf.Tensor) -> RowLoss:
    """Cross entropy with the labels as they are."""
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
    """FNW of stream rows: each is a negative, and a positive too where it is known to be one."""

    def rows(logit: tf.Tensor) -> tf.Tensor:
        f = tf.stop_gradient(tf.sigmoid(logit))
        as_negative = (1.0 - f) * (1.0 + f) * tf.nn.softplus(logit)
        return as_negative + labels * (1.0 + f) * tf.nn.softplus(-logit)

    return RowLoss(rows)


def late_positive_loss(labels: tf.Tensor, known: tf.Tensor) -> RowLoss:
    """FNW of batch rows: those that the stream gave as negatives and that are positive.

    known: float32[N], see `Minibatch.known`; where it is NaN a row takes no part.
    """

    def rows(logit: tf.Tensor) -> tf.Tensor:
        f = tf.stop_gradient(tf.sigmoid(logit))
        return (1.0 + f) * tf.nn.softplus(-logit)

    return RowLoss(rows, (labels > 0.5) & tf.equal(known, 0.0), whole=True)


def added(first: RowLoss, second: RowLoss) -> RowLoss:
    """Both losses of each row. The first is of all rows; rows of no part add nothing."""

    def rows(logit: tf.Tensor) -> tf.Tensor:
        more = second.rows(logit)
        if second.part is not None:
            more = tf.where(second.part, more, tf.zeros_like(more))
        return first.rows(logit) + more

    return RowLoss(rows)


def without(loss: RowLoss, held: tf.Tensor) -> RowLoss:
    """The same loss of the rows that are not held, bool[N]."""
    part = ~held if loss.part is None else loss.part & ~held
    return loss._replace(part=part)
