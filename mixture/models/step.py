"""The training step and the scoring step of all models together, each one TensorFlow function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from forebay.config.specs.datasets import Feed
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.models.late.lessons import LabelTensors
from forebay.mixture.models.layers.embeddings import Stack, locate
from forebay.mixture.models.paradigm import Inputs, Parts
from forebay.mixture.models.seed_models import SeedModels, Stepped
from forebay.mixture.score_columns import ScoreColumn

Function = Callable[..., Any]
# Nothing in the models branches on a tensor, and AutoGraph's rewriting takes a process seconds.
AUTOGRAPH = False


class Counters(NamedTuple):
    """What steps count in variables of the model.

    row_sums: int64[sources, 3]. learnt: rows by variant and source, int64[variants, sources]; with
    several labels, those for each label follow, for all variants, int64[variants * (1 + labels),
    sources]. masked, paused: rows that variants left out, in the same shape; None if none can.
    unsaid: rows that lack a label, int64[labels, sources]; None if there is only one label.
    """

    steps: tf.Variable
    row_sums: tf.Variable
    learnt: tf.Variable
    masked: tf.Variable | None = None
    paused: tf.Variable | None = None
    unsaid: tf.Variable | None = None

    @classmethod
    def of(cls, variants: int, sources: int, labels: int, *, left_out: bool) -> Counters:
        """Nothing is counted yet. left_out: whether to count what variants leave out too."""
        several = labels > 1
        table = [variants * (1 + labels) if several else variants, sources]
        shapes: dict[str, list[int]] = {"steps": [], "row_sums": [sources, 3], "learnt": table}
        if left_out:
            shapes |= {"masked": table, "paused": table}
        if several:
            shapes["unsaid"] = [labels, sources]
        return cls(
            **{
                name: tf.Variable(tf.zeros(shape, tf.int64), trainable=False)
                for name, shape in shapes.items()
            }
        )

    @property
    def variables(self) -> dict[str, tf.Variable]:
        return {name: each for name, each in self._asdict().items() if each is not None}

    @property
    def resettable(self) -> dict[str, tf.Variable]:
        return {n: each for n, each in self.variables.items() if n in {"masked", "paused"}}

    def see(self, sources: tf.Tensor, row_ids: tf.Tensor) -> None:
        self.steps.assign_add(1)
        parts = tf.stack([tf.ones_like(row_ids), row_ids, row_ids * row_ids], axis=1)
        self.row_sums.assign_add(self._by_source(parts, sources))

    def took(self, sources: tf.Tensor, models: Sequence[Stepped]) -> None:
        kinds = [self.learnt, self.masked, self.paused]
        by_label = zip(*(each.by_label for each in models), strict=True)
        answers = [*(each.rows for each in models), *(rows for label in by_label for rows in label)]
        rows = zip(*answers, strict=True)
        for counted, each in zip(kinds, rows, strict=True):
            if counted is not None:
                parts = tf.cast(tf.stack(each, axis=1), tf.int64)
                counted.assign_add(tf.transpose(self._by_source(parts, sources)))

    def read(self, sources: tf.Tensor, labels: Sequence[LabelTensors]) -> None:
        if self.unsaid is not None:
            without = [tf.cast(~rows.said, tf.int64) for rows in labels if rows.said is not None]
            parts = self._by_source(tf.stack(without, axis=1), sources)
            self.unsaid.assign_add(tf.transpose(parts))

    def _by_source(self, parts: tf.Tensor, sources: tf.Tensor) -> tf.Tensor:
        return tf.math.unsorted_segment_sum(parts, sources, self.row_sums.shape[0])


def feature_signature(layout: FeatureLayout) -> tuple[object, ...]:
    """The first arguments of both functions: dense, ids, lists. The number of rows is not fixed."""
    splits = tf.TensorSpec([None], tf.int64)
    return (
        tf.TensorSpec([None, len(layout.dense)], tf.float32),
        tf.TensorSpec([None, len(layout.ids)], tf.int64),
        tuple((splits, splits) for _ in layout.lists),
    )


def score_function(
    layout: FeatureLayout,
    stacks: Sequence[Stack],
    seeds: Sequence[SeedModels],
    columns: Sequence[ScoreColumn],
    labels: Sequence[str],
) -> Function:
    """(dense, ids, lists) -> probabilities float32[N, columns]."""

    def score(
        dense: tf.Tensor, ids: tf.Tensor, lists: Sequence[tuple[tf.Tensor, tf.Tensor]]
    ) -> tf.Tensor:
        inputs = Inputs(dense, locate(stacks, ids, lists, distinct=False))
        found = {
            (model.name, tower, seed): logit
            for seed, models in enumerate(seeds)
            for model, logits in zip(models.models, models.answers(inputs), strict=True)
            for tower, logit in logits.items()
        }
        wanted = [
            _of_label(found[each.variant, each.tower or "score", each.seed], each.label, labels)
            for each in columns
        ]
        return tf.sigmoid(tf.stack(wanted, axis=1))

    signature = feature_signature(layout)
    function: Function = tf.function(score, input_signature=signature, autograph=AUTOGRAPH)
    return function


def _of_label(logit: tf.Tensor, label: str, labels: Sequence[str]) -> tf.Tensor:
    """The logit of one of several labels, the first one unless named: float32[N]."""
    if len(labels) == 1:
        return logit
    return logit[:, labels.index(label) if label else 0]


def learn_function(
    layout: FeatureLayout,
    stacks: Sequence[Stack],
    seeds: Sequence[SeedModels],
    parts: Sequence[Parts],
    feed: Feed,
    counters: Counters,
) -> Function:
    """The train step: (dense, ids, lists, labels, waits, known, sources, row_ids) -> four tensors.

    The ids are made distinct once for all models, and the row sums are updated in the same call as
    the weights: they are the model's own proof of what it has seen. parts: what a minibatch of the
    feed trains in each variant. labels, waits, known: see `LabelTensors.of`. Returns: losses
    float32[seeds, variants]; on how many rows each was trained, int32 of that shape; losses of the
    delay heads, float32[seeds]; what the first seed's guards held, see `SeedStepped`.
    """
    heads = any(head is not None for each in seeds for head in each.heads)
    idle = not any(parts) and not (feed == "batch" and heads)

    def learn(
        dense: tf.Tensor,
        ids: tf.Tensor,
        lists: Sequence[tuple[tf.Tensor, tf.Tensor]],
        labels: tf.Tensor,
        waits: tf.Tensor,
        known: tf.Tensor,
        sources: tf.Tensor,
        row_ids: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        counters.see(sources, row_ids)
        rows_of_labels = LabelTensors.of(labels, waits, known)
        counters.read(sources, rows_of_labels)
        if idle:
            shape = [len(seeds), len(parts)]
            nothing = tf.zeros(shape), tf.zeros(shape, tf.int32), tf.zeros([len(seeds)])
            return *nothing, seeds[0].holds_none(sources)
        inputs = Inputs(dense, locate(stacks, ids, lists, distinct=True))
        found = [each.learn(inputs, rows_of_labels, sources, feed, parts) for each in seeds]
        counters.took(sources, found[0].models)
        losses = [[each.loss for each in one.models] for one in found]
        rows = [
            [tf.math.count_nonzero(each.rows.learnt, dtype=tf.int32) for each in one.models]
            for one in found
        ]
        head_losses = tf.stack([one.head_loss for one in found])
        return tf.stack(losses), tf.stack(rows), head_losses, found[0].held

    several = len(layout.further_labels) > 0
    of_label = [None, 1 + len(layout.further_labels)] if several else [None]
    signature = (
        *feature_signature(layout),
        tf.TensorSpec(of_label, tf.float32, "labels"),
        tf.TensorSpec(of_label, tf.float32, "waits"),
        tf.TensorSpec(of_label, tf.float32, "known"),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None], tf.int64),
    )
    function: Function = tf.function(learn, input_signature=signature, autograph=AUTOGRAPH)
    return function
