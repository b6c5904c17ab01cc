"""One tower in plain Keras, without Forebay's models, for `flights_year.py --bare`."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf  # noqa: TID253

from forebay.config.datasets import Feed
from forebay.config.feeds import Phase
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.score_columns import ScoreColumn

RATE, EMBEDDING_RATE = 0.003, 0.1
HIDDEN = (64, 32)
FEEDS: dict[str, tuple[Feed, ...]] = {
    "batch": ("batch",),
    "stream": ("stream",),
    "mixed": ("batch", "stream"),
}


class BareTower:
    """What `replay` needs of a learner: one paradigm with Adam for layers, Adagrad for ids."""

    def __init__(self, paradigm: str, layout: FeatureLayout, seed: int) -> None:
        """Draw the weights by Keras's own means."""
        keras.utils.set_random_seed(seed)
        self._feeds = FEEDS[paradigm]
        self.columns: Sequence[ScoreColumn] = [ScoreColumn(paradigm)]
        self._embeddings = [
            keras.layers.Embedding(each.cardinality, each.dimension) for each in layout.ids
        ]
        layers = [keras.layers.Dense(width, activation="relu") for width in HIDDEN]
        self._tower = keras.Sequential([*layers, keras.layers.Dense(1)])
        self._ids_rate = keras.optimizers.Adagrad(EMBEDDING_RATE, initial_accumulator_value=1e-10)
        self._rate = keras.optimizers.Adam(RATE)
        self._logits(tf.zeros([1, len(layout.dense)]), tf.zeros([1, len(layout.ids)], tf.int64))
        self._score = tf.function(self._logits, reduce_retracing=True)
        self._step = tf.function(self._learn, reduce_retracing=True)
        self._learnt = 0

    def set_phase(self, phase: Phase) -> None:
        """One paradigm learns alike in both phases."""
        del phase

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        """One step, where the paradigm takes the feed."""
        if minibatch.feed in self._feeds:
            self._step(minibatch.dense, minibatch.ids, minibatch.labels)
            self._learnt += len(minibatch)
        return {}

    def score(self, minibatch: Minibatch) -> npt.NDArray[np.float32]:
        """Probabilities float32[N, 1]."""
        logits = self._score(tf.constant(minibatch.dense), tf.constant(minibatch.ids))
        return np.asarray(tf.sigmoid(logits).numpy(), np.float32)[:, np.newaxis]

    def learnt(self) -> dict[str, list[int]]:
        """Rows."""
        return {self.columns[0].variant: [self._learnt]}

    def guards(self) -> dict[str, object]:
        """None."""
        return {}

    def _logits(self, dense: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
        found = [layer(ids[:, place]) for place, layer in enumerate(self._embeddings)]
        return tf.squeeze(self._tower(tf.concat([dense, *found], axis=1)), axis=1)

    def _learn(self, dense: tf.Tensor, ids: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            logits = self._logits(dense, ids)
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        tables = [layer.embeddings for layer in self._embeddings]
        layers = list(self._tower.trainable_variables)
        gradients = tape.gradient(loss, [*tables, *layers])
        self._ids_rate.apply(gradients[: len(tables)], tables)
        self._rate.apply(gradients[len(tables) :], layers)
