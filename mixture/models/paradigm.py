"""What all paradigms share: what they read, what they answer, how they are saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from forebay.config.datasets import Feed
from forebay.config.feeds import learns_from
from forebay.config.models import Paradigm
from forebay.mixture.models.embeddings import Place, Tables
from forebay.mixture.models.towers import Tower


class Inputs(NamedTuple):
    """Tensors of one minibatch that every paradigm reads."""

    dense: tf.Tensor
    places: Sequence[Place]

    def features(self, read: Sequence[tf.Tensor]) -> tf.Tensor:
        """Dense features and embeddings side by side."""
        pooled = [place.pooled(rows) for place, rows in zip(self.places, read, strict=True)]
        return tf.concat([self.dense, *pooled], axis=1)


class ParadigmModel(ABC):
    """One paradigm's model."""

    def __init__(self, name: Paradigm) -> None:
        """Keep the name."""
        self.name = name

    def takes(self, feed: Feed, *, warm_start: bool) -> bool:
        """Whether the model learns from minibatches of this feed."""
        return learns_from(self.name, feed, warm_start=warm_start)

    @property
    @abstractmethod
    def variables(self) -> dict[str, tf.Variable]:
        """Everything that a checkpoint holds, by name."""

    @property
    @abstractmethod
    def served(self) -> list[tf.Variable]:
        """The variables that `logits` reads."""

    @abstractmethod
    def logits(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        """The answer as `score`; further towers under their own names."""

    @abstractmethod
    def learn(self, inputs: Inputs, labels: tf.Tensor, feed: Feed) -> tf.Tensor:
        """One step. Returns the mean loss before it."""


def mean_loss(labels: tf.Tensor, logit: tf.Tensor) -> tf.Tensor:
    """Mean cross entropy of a minibatch."""
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logit))


def checked(loss: tf.Tensor, gradient: tf.Tensor) -> tf.Tensor:
    """The loss, or NaN where the gradient is not finite: a ReLU can hide a NaN from the loss."""
    sound = tf.math.is_finite(tf.reduce_sum(gradient))
    return tf.where(sound, loss, float("nan"))


def named_variables(parts: Mapping[str, Tables | Tower]) -> dict[str, tf.Variable]:
    """The variables of several parts under one set of names."""
    return {
        f"{part}_{name}": variable
        for part, owner in parts.items()
        for name, variable in owner.variables.items()
    }
