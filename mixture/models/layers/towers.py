"""Tower: dense layers with ReLU and a logit for each label, all weights in one flat variable."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

EXTRA_SEED = 500  # rows for extra inputs use a random stream of their own
BETA1, BETA2, ADAM_EPSILON = 0.9, 0.999, 1e-7


class Output(NamedTuple):
    """logit: float32[N], of several labels float32[N, L].

    hidden: the last hidden layer, or the input if there is none.
    """

    logit: tf.Tensor
    hidden: tf.Tensor


class _Trained:
    """One flat variable that Adam trains: one fused operation for all dense weights of a tower."""

    def __init__(self, drawn: tf.Tensor, rate: float) -> None:
        self._rate = rate
        self.weights = tf.Variable(drawn)
        self._first = tf.Variable(tf.zeros(drawn.shape), trainable=False)
        self._second = tf.Variable(tf.zeros(drawn.shape), trainable=False)
        self._beta1_power = tf.Variable(BETA1, trainable=False)
        self._beta2_power = tf.Variable(BETA2, trainable=False)

    @property
    def variables(self) -> dict[str, tf.Variable]:
        return {
            "weights": self.weights,
            "adam_first": self._first,
            "adam_second": self._second,
            "adam_beta1_power": self._beta1_power,
            "adam_beta2_power": self._beta2_power,
        }

    def update(self, gradient: tf.Tensor) -> None:
        tf.raw_ops.ResourceApplyAdam(
            var=self.weights.handle,
            m=self._first.handle,
            v=self._second.handle,
            beta1_power=self._beta1_power.read_value(),
            beta2_power=self._beta2_power.read_value(),
            lr=self._rate,
            beta1=BETA1,
            beta2=BETA2,
            epsilon=ADAM_EPSILON,
            grad=gradient,
        )
        self._beta1_power.assign(self._beta1_power * BETA1)
        self._beta2_power.assign(self._beta2_power * BETA2)


class Tower(_Trained):
    """A multi-layer perceptron that Adam trains.

    With several labels, each has its own output on the last hidden layer, which they share: the
    shared bottom of Caruana ("Multitask Learning", 1997).

    `extra` inputs follow the first `inputs`. All other weights are drawn as if there were none:
    towers with the same shape and seed start equal.
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        *,
        seed: int,
        rate: float,
        extra: int = 0,
        outputs: int = 1,
    ) -> None:
        """Draw the weights. outputs: labels."""
        widths = [inputs, *hidden, outputs]
        self._outputs = outputs
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
        super().__init__(flat, rate)
        self.first_width = widths[1]

    def scale_last_layer(self, scale: float, bias: float) -> None:
        """Start with a logit near `bias`, whatever the inputs."""
        last = math.prod(self._shapes[-2])
        self.weights[-1 - last : -1].assign(self.weights[-1 - last : -1] * scale)
        self.weights[-1:].assign([bias])

    def forward(
        self, weights: tf.Tensor, inputs: tf.Tensor, added: tf.Tensor | None = None
    ) -> Output:
        """Run the tower with a value of its flat weights, so that a tape can watch that value.

        added: float32[N, first_width], added to the first layer's output before its ReLU.
        """
        sizes = [math.prod(shape) for shape in self._shapes]
        parts = [
            tf.reshape(part, shape)
            for part, shape in zip(tf.split(weights, sizes), self._shapes, strict=True)
        ]
        hidden = inputs
        for kernel, bias in zip(parts[:-2:2], parts[1:-2:2], strict=True):
            hidden = tf.nn.relu(_layer(hidden, kernel, bias, added))
            added = None
        logit = _layer(hidden, parts[-2], parts[-1], added)
        return Output(tf.squeeze(logit, axis=1) if self._outputs == 1 else logit, hidden)


class MemoryInputs(_Trained):
    """The first layer's weights on further inputs, separate from the tower and initially zero.

    As long as they are zero, the tower answers as if it had no such inputs.
    """

    def __init__(self, inputs: int, width: int, *, rate: float) -> None:
        self._shape = [inputs, width]
        super().__init__(tf.zeros([inputs * width]), rate)

    def forward(self, weights: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
        """What `Tower.forward` adds, given a value of the weights."""
        return tf.matmul(inputs, tf.reshape(weights, self._shape))


def _layer(
    inputs: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor, added: tf.Tensor | None
) -> tf.Tensor:
    found = tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
    return found if added is None else found + added
