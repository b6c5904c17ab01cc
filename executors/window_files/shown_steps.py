"""Rows by source, losses and lag over the steps of a window, thinned to what a plot can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forebay.executors.window_files.steps import StepPoint, read_steps

SHOWN_MAX = 200


def shown_series(path: Path, points_max: int = SHOWN_MAX) -> dict[str, Any] | None:
    """What the trainer of a window recorded; None if it recorded nothing.

    Args:
        path: the file of its steps.
        points_max: the most points that are kept, including the first and the last.

    Returns:
        Lists of equal length: `steps`, `seconds`, `lag_seconds`, `rows` by source and `losses` by
        paradigm and feed: the mean since the point before, None where it had no step.
    """
    kept = _spread(read_steps(path), points_max)
    if not kept:
        return None
    return {
        "steps": [one.step for one in kept],
        "seconds": [round(one.seconds, 2) for one in kept],
        "lag_seconds": [round(one.lag_seconds) for one in kept],
        "rows": {name: [one.rows[name] for one in kept] for name in kept[-1].rows},
        "losses": {name: _means(kept, name) for name in kept[-1].losses},
    }


def _means(points: Sequence[StepPoint], name: str) -> list[float | None]:
    found: list[float | None] = []
    total, steps = 0.0, 0
    for point in points:
        total_now, steps_now = point.losses.get(name, (0.0, 0))
        more = steps_now - steps
        found.append(round((total_now - total) / more, 5) if more > 0 else None)
        total, steps = total_now, steps_now
    return found


def _spread(points: Sequence[StepPoint], count: int) -> list[StepPoint]:
    if len(points) <= count:
        return list(points)
    last = len(points) - 1
    return [points[round(number * last / (count - 1))] for number in range(count)]
