"""The paradigms in plain Keras, without Forebay's models, for `flights_year.py --bare`."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf  # noqa: TID253

from forebay.config.specs.feeds import Phase
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.score_columns import ScoreColumn

RATE, EMBEDDING_RATE = 0.003, 0.1
HIDDEN, MEMORY_HIDDEN = (64, 32), (32, 16)
GAIN = 0.05
# The phases in which a paradigm learns from batch rows, and from stream rows.
_ALWAYS = ("warm_start", "warm_start_end", "window")
PHASES: dict[str, dict[str, tuple[str, ...]]] = {
    "batch": {"batch": _ALWAYS, "stream": ()},
    "stream": {"batch": (), "stream": _ALWAYS},
    "batch_then_stream": {"batch": _ALWAYS[:2], "stream": _ALWAYS[1:]},
    "mixed": {"batch": _ALWAYS, "stream": _ALWAYS},
}


class BareTower:
    """What `replay` needs of a learner: one tower with Adam for layers, Adagrad for ids."""

    def __init__(
        self, paradigm: str, layout: FeatureLayout, seed: int, hidden: Sequence[int] = HIDDEN
    ) -> None:
        """Draw the weights by Keras's own means."""
        keras.utils.set_random_seed(seed)
        self._phases = PHASES[paradigm]
        self.phase: Phase = "window"
        self.columns: Sequence[ScoreColumn] = [ScoreColumn(paradigm)]
        self._embeddings = [
            keras.layers.Embedding(each.cardinality, each.dimension) for each in layout.ids
        ]
        self._layers = [keras.layers.Dense(width) for width in (*hidden, 1)]
        self._ids_rate = keras.optimizers.Adagrad(EMBEDDING_RATE, initial_accumulator_value=1e-10)
        self._rate = keras.optimizers.Adam(RATE)
        self.logits(tf.zeros([1, len(layout.dense)]), tf.zeros([1, len(layout.ids)], tf.int64))
        self._tables = [each.embeddings for each in self._embeddings]
        self._dense = [each for layer in self._layers for each in layer.trainable_variables]
        self._ids_rate.build(self._tables)
        self._rate.build(self._dense)
        self.answer = tf.function(self.logits, reduce_retracing=True)
        self._step = tf.function(self._learn, reduce_retracing=True)
        self._learnt = 0

    def set_phase(self, phase: Phase) -> None:
        """What the next minibatches belong to."""
        self.phase = phase

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        """One step, where the paradigm takes the feed."""
        if self.phase in self._phases[minibatch.feed]:
            self._step(minibatch.dense, minibatch.ids, minibatch.labels, self.side(minibatch))
            self._learnt += len(minibatch)
        return {}

    def score(self, minibatch: Minibatch) -> npt.NDArray[np.float32]:
        """Probabilities float32[N, 1]."""
        logits = self.answer(minibatch.dense, minibatch.ids, self.side(minibatch))
        return np.asarray(tf.sigmoid(logits).numpy(), np.float32)[:, np.newaxis]

    def learnt(self) -> dict[str, list[int]]:
        """Rows."""
        return {self.columns[0].variant: [self._learnt]}

    def held(self) -> None:
        """Nothing is."""

    def guards(self) -> dict[str, object]:
        """None."""
        return {}

    def side(self, minibatch: Minibatch) -> tf.Tensor | None:
        """What the first layer reads besides the features: float32[N, 1]; None for nothing."""
        del minibatch
        return None

    def added(self, side: tf.Tensor) -> tf.Tensor:
        """What that adds to the first layer's output."""
        raise NotImplementedError

    def logits(self, dense: tf.Tensor, ids: tf.Tensor, side: tf.Tensor | None = None) -> tf.Tensor:
        """The tower's answer, float32[N]."""
        found = [layer(ids[:, place]) for place, layer in enumerate(self._embeddings)]
        first, *others = self._layers
        hidden = first(tf.concat([dense, *found], axis=1))
        if side is not None:
            hidden += self.added(side)
        for layer in others:
            hidden = layer(tf.nn.relu(hidden))
        return tf.squeeze(hidden, axis=1)

    def move_added(self, tape: tf.GradientTape, loss: tf.Tensor) -> None:
        """One step of the weights behind `added`."""
        raise NotImplementedError

    def _learn(
        self, dense: tf.Tensor, ids: tf.Tensor, labels: tf.Tensor, side: tf.Tensor | None
    ) -> None:
        with tf.GradientTape(persistent=True) as tape:
            logits = self.logits(dense, ids, side)
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        gradients = tape.gradient(loss, [*self._tables, *self._dense])
        if side is not None:
            self.move_added(tape, loss)
        self._ids_rate.apply(gradients[: len(self._tables)], self._tables)
        self._rate.apply(gradients[len(self._tables) :], self._dense)


class BareMixture(BareTower):
    """The adapt tower: `batch_then_stream` that reads what a tower of batch rows says."""

    def __init__(self, layout: FeatureLayout, seed: int) -> None:
        """Draw both towers; the weights on the memory's answer are zero."""
        self._memory = BareTower("batch", layout, seed, MEMORY_HIDDEN)
        self._reading = keras.layers.Dense(HIDDEN[0], use_bias=False, kernel_initializer="zeros")
        self._reading.build([None, 1])
        self._reading_rate = keras.optimizers.Adam(RATE)
        self._reading_rate.build(self._reading.trainable_variables)
        super().__init__("batch_then_stream", layout, seed)
        self.columns = [ScoreColumn("mixture")]

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        """The adapt tower first, as memory would know the rows by then."""
        super().learn(minibatch)
        return self._memory.learn(minibatch)

    def side(self, minibatch: Minibatch) -> tf.Tensor | None:
        """The memory's answer; nothing in the warm start."""
        if self.phase != "window":
            return None
        return GAIN * self._memory.answer(minibatch.dense, minibatch.ids)[:, tf.newaxis]

    def added(self, side: tf.Tensor) -> tf.Tensor:
        """Its share in each unit."""
        return self._reading(side)

    def move_added(self, tape: tf.GradientTape, loss: tf.Tensor) -> None:
        """One step of the weights on the memory's answer."""
        weights = self._reading.trainable_variables
        self._reading_rate.apply(tape.gradient(loss, weights), weights)
