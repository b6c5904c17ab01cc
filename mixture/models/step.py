"""The train step and the scoring step of all paradigms together, each one TensorFlow function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from forebay.config.datasets import Feed
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.models.embeddings import Stack, locate
from forebay.mixture.models.paradigm import Inputs, ParadigmModel

Function = Callable[..., tf.Tensor]
# Nothing in the models branches on a tensor, and rewriting their Python takes a process seconds.
AUTOGRAPH = False


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
    learning: Sequence[ParadigmModel],
    feed: Feed,
    row_sums: tf.Variable,
    steps: tf.Variable,
) -> Function:
    """(dense, ids, lists, labels, sources, row_ids) -> loss of each learning paradigm.

    The ids are made distinct once for all paradigms, and the row sums move in the same call as
    the weights: they are the model's own proof of what it has seen.
    """

    def learn(
        dense: tf.Tensor,
        ids: tf.Tensor,
        lists: Sequence[tuple[tf.Tensor, tf.Tensor]],
        labels: tf.Tensor,
        sources: tf.Tensor,
        row_ids: tf.Tensor,
    ) -> tf.Tensor:
        steps.assign_add(1)
        parts = tf.stack([tf.ones_like(row_ids), row_ids, row_ids * row_ids], axis=1)
        row_sums.assign_add(tf.math.unsorted_segment_sum(parts, sources, row_sums.shape[0]))
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
