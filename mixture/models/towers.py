"""Tower: dense layers with ReLU and one logit, all weights in one flat variable."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from forebay.mixture.models.optimisers import Adam

EXTRA_SEED = 500  # rows for extra inputs draw from a random stream of their own


class Output(NamedTuple):
    """logit: float32[N]. hidden: the last hidden layer, or the input where there is none."""

    logit: tf.Tensor
    hidden: tf.Tensor


class Tower:
    """A multi-layer perceptron that Adam trains.

    `extra` inputs follow the first `inputs`. All other weights are drawn as if there were none:
    towers of one shape and one seed begin alike.
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], *, seed: int, rate: float, extra: int = 0
    ) -> None:
        """Draw the weights."""
        widths = [inputs, *hidden, 1]
        self._shapes: list[list[int]] = []
        drawn: list[tf.Tensor] = []
        for layer, (wide, narrow) in enumerate(itertools.pairwise(widths)):
            limit = math.sqrt(6 / (wide + narrow))
            kernel = tf.random.stateless_uniform([wide, narrow], [seed, layer], -limit, limit)
            added = extra if layer == 0 else 0
            more = tf.random.stateless_uniform([added, narrow], [seed, EXTRA_SEED], -limit, limit)
            self._shapes += [[wide + added, narrow], [narrow]]
            drawn += [tf.concat([kernel, more], axis=0), tf.zeros([narrow])]
        flat = tf.concat([tf.reshape(part, [-1]) for part in drawn], axis=0)
        self.weights = tf.Variable(flat)
        self._adam = Adam(int(flat.shape[0]), rate)

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """State by name."""
        adam = {f"adam_{name}": variable for name, variable in self._adam.variables.items()}
        return {"weights": self.weights, **adam}

    def forward(self, weights: tf.Tensor, inputs: tf.Tensor) -> Output:
        """Run the tower with a value of its flat weights, so that a tape can watch that value."""
        sizes = [math.prod(shape) for shape in self._shapes]
        parts = [
            tf.reshape(part, shape)
            for part, shape in zip(tf.split(weights, sizes), self._shapes, strict=True)
        ]
        hidden = inputs
        for kernel, bias in zip(parts[:-2:2], parts[1:-2:2], strict=True):
            hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(hidden, kernel), bias))
        logit = tf.nn.bias_add(tf.matmul(hidden, parts[-2]), parts[-1])
        return Output(tf.squeeze(logit, axis=1), hidden)

    def update(self, gradient: tf.Tensor) -> None:
        """One Adam step."""
        self._adam.apply(self.weights, gradient)
