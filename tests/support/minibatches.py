"""Minibatches with only events and labels: what scores are stored for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forebay.config.specs.datasets import Feed
from forebay.mixture.minibatch import Minibatch


def labelled(feed: Feed, event_ids: Sequence[int], labels: Sequence[float]) -> Minibatch:
    rows = len(event_ids)
    return Minibatch(
        feed=feed,
        row_ids=np.arange(rows, dtype=np.int64),
        event_ids=np.array(event_ids, dtype=np.int64),
        sources=np.zeros(rows, dtype=np.int32),
        labels=np.array(labels, dtype=np.float32),
        dense=np.zeros((rows, 0), dtype=np.float32),
        ids=np.zeros((rows, 0), dtype=np.int64),
    )
