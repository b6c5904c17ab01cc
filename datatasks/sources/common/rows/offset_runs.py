"""Runs of offsets and what they are: records, or why there is none.

A stream counts offsets where a message holds any number of rows. Each offset that was planned is
one of these, so that a lost record cannot hide behind a marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from forebay.datatasks.tasks import NO_OFFSETS, OffsetsRead

# In the order of the fields of OffsetsRead.
RECORDS, CONTROL, ABORTED, COMPACTED = range(4)

Runs = npt.NDArray[np.int64]


class Run(NamedTuple):
    """Offsets [first, end) of one kind."""

    first: int
    end: int
    kind: int


def as_runs(runs: Sequence[Run]) -> Runs:
    """One line for each run."""
    return np.array(runs, np.int64).reshape(-1, 3)


def between(runs: Runs, first: int, end: int) -> Runs:
    """Those of the offsets in [first, end)."""
    firsts, ends = np.maximum(runs[:, 0], first), np.minimum(runs[:, 1], end)
    return np.stack([firsts, ends, runs[:, 2]], axis=1)[firsts < ends]


def offsets_read(runs: Runs | None, until: int) -> OffsetsRead:
    """How many offsets before `until` are of each kind."""
    if runs is None:
        return NO_OFFSETS
    lengths = np.maximum(np.minimum(runs[:, 1], until) - runs[:, 0], 0)
    counts = [int(lengths[runs[:, 2] == kind].sum()) for kind in range(4)]
    return OffsetsRead(**dict(zip(OffsetsRead.model_fields, counts, strict=True)))
