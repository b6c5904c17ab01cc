"""Rows by source and lag over the steps of a window, thinned to what a plot can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forebay.executors.window_files.steps import StepPoint, read_steps

SHOWN_MAX = 200


def shown_series(path: Path, points_max: int = SHOWN_MAX) -> dict[str, Any] | None:
    """What the trainer of a window noted; None where it noted nothing.

    Args:
        path: the file of its steps.
        points_max: the most points that are kept, the first and the last among them.

    Returns:
        Lists of equal length: `steps`, `seconds`, `lag_seconds`, and `rows` by source.
    """
    kept = _spread(read_steps(path), points_max)
    if not kept:
        return None
    return {
        "steps": [one.step for one in kept],
        "seconds": [round(one.seconds, 2) for one in kept],
        "lag_seconds": [round(one.lag_seconds) for one in kept],
        "rows": {name: [one.rows[name] for one in kept] for name in kept[-1].rows},
    }


def _spread(points: Sequence[StepPoint], count: int) -> list[StepPoint]:
    if len(points) <= count:
        return list(points)
    last = len(points) - 1
    return [points[round(number * last / (count - 1))] for number in range(count)]
