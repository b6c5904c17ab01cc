"""Embedding tables: one stacked table per dimension, so a step gathers once from each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from forebay.mixture.features.layout import FeatureLayout

INITIAL_SCALE = 0.05
TABLE_SEED = 1_000  # tables use other random streams than tower layers
ADAGRAD_EPSILON = 1e-10


@dataclass(frozen=True)
class Stack:
    """Features of one dimension: their places in the layout, and where their rows begin."""

    dimension: int
    rows: int
    ids: tuple[int, ...]
    id_offsets: tuple[int, ...]
    lists: tuple[int, ...]
    list_offsets: tuple[int, ...]

    @property
    def width(self) -> int:
        return self.dimension * (len(self.ids) + len(self.lists))


def stacks_of(layout: FeatureLayout) -> tuple[Stack, ...]:
    """Group the id features of a layout by dimension, in ascending order."""
    dimensions = sorted({column.dimension for column in (*layout.ids, *layout.lists)})
    return tuple(_stack(layout, dimension) for dimension in dimensions)


def _stack(layout: FeatureLayout, dimension: int) -> Stack:
    ids = [n for n, column in enumerate(layout.ids) if column.dimension == dimension]
    lists = [n for n, column in enumerate(layout.lists) if column.dimension == dimension]
    sizes = [layout.ids[n].cardinality for n in ids] + [layout.lists[n].cardinality for n in lists]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).tolist()
    return Stack(
        dimension=dimension,
        rows=starts[-1],
        ids=tuple(ids),
        id_offsets=tuple(starts[: len(ids)]),
        lists=tuple(lists),
        list_offsets=tuple(starts[len(ids) : -1]),
    )


@dataclass(frozen=True)
class Place:
    """Where a minibatch's ids are in one stack; the same for the tables of every paradigm.

    rows: the table rows to read; if they are distinct, `places` maps each id to its row. segments:
    the row of each value of the list features, one tensor per feature.
    """

    stack: Stack
    count: tf.Tensor
    rows: tf.Tensor
    places: tf.Tensor | None
    segments: tuple[tf.Tensor, ...]

    def pooled(self, read: tf.Tensor) -> tf.Tensor:
        """A tower's input [N, width] from the rows read: single ids side by side, lists' means."""
        each = read if self.places is None else tf.gather(read, self.places)
        stack = self.stack
        if not self.segments:
            return tf.reshape(each, [self.count, stack.width])
        single = self.count * len(stack.ids)
        sizes = tf.stack([single, *(tf.size(segment) for segment in self.segments)])
        first, *rest = tf.split(each, sizes, num=1 + len(self.segments))
        parts = [tf.reshape(first, [self.count, stack.dimension * len(stack.ids)])]
        for values, segment in zip(rest, self.segments, strict=True):
            parts.append(_mean(values, segment, self.count))
        return tf.concat(parts, axis=1)


def locate(
    stacks: Sequence[Stack],
    ids: tf.Tensor,
    lists: Sequence[tuple[tf.Tensor, tf.Tensor]],
    *,
    distinct: bool,
) -> tuple[Place, ...]:
    """Find the rows of a minibatch. `distinct` reads each row once, which learning needs."""
    found = []
    for stack in stacks:
        count = tf.shape(ids)[0]
        chosen = tf.constant(stack.ids, tf.int32, [len(stack.ids)])  # may be empty: only lists
        mine = ids if len(stack.ids) == ids.shape[1] else tf.gather(ids, chosen, axis=1)
        offsets = tf.constant(stack.id_offsets, tf.int64, [len(stack.ids)])
        parts = [tf.reshape(mine + offsets, [-1])]
        segments = []
        for place, offset in zip(stack.lists, stack.list_offsets, strict=True):
            splits, values = lists[place]
            parts.append(values + offset)
            lengths = splits[1:] - splits[:-1]
            segments.append(tf.repeat(tf.range(count), lengths))
        rows = tf.concat(parts, axis=0) if segments else parts[0]
        rows, places = tf.unique(rows) if distinct else (rows, None)
        found.append(Place(stack, count, rows, places, tuple(segments)))
    return tuple(found)


def _mean(values: tf.Tensor, segment: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    sums = tf.math.unsorted_segment_sum(values, segment, count)
    sizes = tf.math.unsorted_segment_sum(tf.ones_like(segment, tf.float32), segment, count)
    return sums / tf.maximum(sizes, 1.0)[:, tf.newaxis]


class Tables:
    """The embedding rows of one model, one table for each stack, and their Adagrad sums."""

    def __init__(self, stacks: Sequence[Stack], seed: int, rate: float) -> None:
        """Draw small rows; the same seed draws the same rows in every model."""
        self._rate = rate
        self.tables = [
            tf.Variable(
                tf.random.stateless_uniform(
                    [stack.rows, stack.dimension],
                    [seed, TABLE_SEED + number],
                    -INITIAL_SCALE,
                    INITIAL_SCALE,
                )
            )
            for number, stack in enumerate(stacks)
        ]
        self.sums = [tf.Variable(tf.zeros([stack.rows]), trainable=False) for stack in stacks]

    @property
    def variables(self) -> dict[str, tf.Variable]:
        tables = {f"table{n}": table for n, table in enumerate(self.tables)}
        return tables | {f"sums{n}": sums for n, sums in enumerate(self.sums)}

    def read(self, places: Sequence[Place]) -> list[tf.Tensor]:
        return [
            table.sparse_read(place.rows) for table, place in zip(self.tables, places, strict=True)
        ]

    def update(self, places: Sequence[Place], gradients: Sequence[tf.Tensor]) -> None:
        """One Adagrad step on the rows that were read, with one squared-gradient sum per row.

        The rows must be distinct.
        """
        each = zip(self.tables, self.sums, places, gradients, strict=True)
        for table, sums, place, read in each:
            gradient = tf.convert_to_tensor(read)
            grown = sums.sparse_read(place.rows) + tf.reduce_mean(tf.square(gradient), axis=1)
            sums.scatter_update(tf.IndexedSlices(grown, place.rows))
            scale = self._rate * tf.math.rsqrt(grown + ADAGRAD_EPSILON)
            table.scatter_sub(tf.IndexedSlices(gradient * scale[:, tf.newaxis], place.rows))
