"""The train step and the scoring step of all paradigms together, each one TensorFlow function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from forebay.config.datasets import Feed
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.models.embeddings import Stack, locate
from forebay.mixture.models.paradigm import Inputs, ParadigmModel

Function = Callable[..., tf.Tensor]
# Nothing in the models branches on a tensor, and rewriting their Python takes a process seconds.
AUTOGRAPH = False


class Counters(NamedTuple):
    """What steps count in variables of the model.

    row_sums: int64[sources, 3]. learnt: rows by paradigm and source, int64[paradigms, sources].
    """

    steps: tf.Variable
    row_sums: tf.Variable
    learnt: tf.Variable

    @classmethod
    def of(cls, paradigms: int, sources: int) -> Counters:
        """Nothing is counted yet."""
        shapes: tuple[list[int], ...] = ([], [sources, 3], [paradigms, sources])
        return cls(*(tf.Variable(tf.zeros(shape, tf.int64), trainable=False) for shape in shapes))

    def add(self, takes: Sequence[bool], sources: tf.Tensor, row_ids: tf.Tensor) -> None:
        """One step of these rows. takes: which paradigms learn from them."""
        self.steps.assign_add(1)
        parts = tf.stack([tf.ones_like(row_ids), row_ids, row_ids * row_ids], axis=1)
        sums = tf.math.unsorted_segment_sum(parts, sources, self.row_sums.shape[0])
        self.row_sums.assign_add(sums)
        self.learnt.assign_add(tf.constant(takes, tf.int64, [len(takes), 1]) * sums[:, 0])


def feature_signature(layout: FeatureLayout) -> tuple[object, ...]:
    """What both functions take first: dense, ids, lists. No dimension of rows is fixed."""
    splits = tf.TensorSpec([None], tf.int64)
    return (
        tf.TensorSpec([None, len(layout.dense)], tf.float32),
        tf.TensorSpec([None, len(layout.ids)], tf.int64),
        tuple((splits, splits) for _ in layout.lists),
    )


def score_function(
    layout: FeatureLayout, stacks: Sequence[Stack], paradigms: Sequence[ParadigmModel]
) -> Function:
    """(dense, ids, lists) -> probabilities float32[N, paradigms]."""

    def score(
        dense: tf.Tensor, ids: tf.Tensor, lists: Sequence[tuple[tf.Tensor, tf.Tensor]]
    ) -> tf.Tensor:
        inputs = Inputs(dense, locate(stacks, ids, lists, distinct=False))
        logits = [paradigm.logits(inputs)["score"] for paradigm in paradigms]
        return tf.sigmoid(tf.stack(logits, axis=1))

    signature = feature_signature(layout)
    function: Function = tf.function(score, input_signature=signature, autograph=AUTOGRAPH)
    return function


def learn_function(
    layout: FeatureLayout,
    stacks: Sequence[Stack],
    paradigms: Sequence[ParadigmModel],
    takes: Sequence[bool],
    feed: Feed,
    counters: Counters,
) -> Function:
    """(dense, ids, lists, labels, sources, row_ids) -> loss of each learning paradigm.

    The ids are made distinct once for all paradigms, and the row sums move in the same call as
    the weights: they are the model's own proof of what it has seen. takes: which paradigms learn.
    """
    learning = [one for one, taken in zip(paradigms, takes, strict=True) if taken]

    def learn(
        dense: tf.Tensor,
        ids: tf.Tensor,
        lists: Sequence[tuple[tf.Tensor, tf.Tensor]],
        labels: tf.Tensor,
        sources: tf.Tensor,
        row_ids: tf.Tensor,
    ) -> tf.Tensor:
        counters.add(takes, sources, row_ids)
        if not learning:
            return tf.zeros([0])
        inputs = Inputs(dense, locate(stacks, ids, lists, distinct=True))
        return tf.stack([paradigm.learn(inputs, labels, feed) for paradigm in learning])

    signature = (
        *feature_signature(layout),
        tf.TensorSpec([None], tf.float32),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None], tf.int64),
    )
    function: Function = tf.function(learn, input_signature=signature, autograph=AUTOGRAPH)
    return function
