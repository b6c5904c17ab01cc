"""Which buffer the next rows come from: Primus (ATC'25) Eq. 4 and Algorithm 2, in runs of rows.

The priority of buffer i is w_i · sigmoid(q_i / queue_unit_i), q_i its queued rows. Row by row,
the largest priority among non-empty buffers wins, the first index on ties. (Algorithm 2 taken
literally may pick an empty buffer, since sigmoid(0) is 0.5; here, empty buffers are not
candidates.) Between two pushes only the winner's priority changes, and it only falls, so a winner
stays the winner for a run of rows, and the end of the run is found by bisection with the same
expression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_EMPTY = -1.0  # below every priority
# Up to here, one row more or less changes q / unit by far more than the error of exp(), so the
# priority never falls when q grows; bisection needs that. Above, rows are taken one by one.
_UNIT_MONOTONE = 1e15


def priority(weight: float, queued_rows: int, queue_unit: float = 1.0) -> float:
    """Eq. 4 for one buffer: the single expression that decides every order."""
    return weight * (1.0 / (1.0 + math.exp(-(queued_rows / queue_unit))))


def take(
    weights: Sequence[float],
    queued_rows: Sequence[int],
    rows_max: int,
    queue_unit: float | Sequence[float] = 1.0,
) -> list[tuple[int, int]]:
    """The next `rows_max` rows as runs (buffer, rows); fewer when the buffers hold fewer.

    Adjacent runs belong to different buffers.

    Raises:
        ValueError: for a weight or unit that is not finite and > 0, a negative queue or `rows_max`,
            or sequences of different lengths.
    """
    units = _checked(weights, queued_rows, queue_unit)
    if rows_max < 0:
        raise ValueError(f"rows_max must not be negative, not {rows_max}")
    queued = list(queued_rows)
    priorities = [
        priority(weight, rows, unit) if rows else _EMPTY
        for weight, rows, unit in zip(weights, queued, units, strict=True)
    ]
    runs: list[tuple[int, int]] = []
    left = min(rows_max, sum(queued))
    while left:
        winner = priorities.index(max(priorities))
        priorities[winner] = _EMPTY
        best_rival = max(priorities)
        # On a tie with the best rival the smaller index goes first.
        wins_ties = winner < priorities.index(best_rival)
        rows = _run(
            weights[winner], queued[winner], units[winner], left, best_rival, wins_ties=wins_ties
        )
        queued[winner] -= rows
        left -= rows
        if queued[winner]:
            priorities[winner] = priority(weights[winner], queued[winner], units[winner])
        if runs and runs[-1][0] == winner:
            runs[-1] = (winner, runs[-1][1] + rows)
        else:
            runs.append((winner, rows))
    return runs


def _run(
    weight: float, queued: int, unit: float, rows_max: int, rival: float, *, wins_ties: bool
) -> int:
    """Rows that the winner gives before its rival's turn, at most `rows_max`.

    The first row is certain. Row k (from 0) comes while queued - k rows still win.
    """
    most = min(queued, rows_max)
    if unit > _UNIT_MONOTONE:
        return 1

    def wins(row: int) -> bool:
        value = priority(weight, queued - row, unit)
        return value > rival or (value == rival and wins_ties)

    if wins(most - 1):
        return most
    won, step = 0, 1
    while won + step < most and wins(won + step):  # gallop: short runs are the frequent ones
        won += step
        step *= 2
    lost = min(won + step, most)
    while lost - won > 1:
        middle = (won + lost) // 2
        if wins(middle):
            won = middle
        else:
            lost = middle
    return won + 1


def _checked(
    weights: Sequence[float], queued_rows: Sequence[int], queue_unit: float | Sequence[float]
) -> Sequence[float]:
    """The unit of each buffer, after a check of all values."""
    count = len(weights)
    units = [queue_unit] * count if isinstance(queue_unit, (int, float)) else list(queue_unit)
    if len(queued_rows) != count or len(units) != count:
        raise ValueError(
            f"{count} weights, {len(queued_rows)} queues and {len(units)} units do not match"
        )
    if isinstance(queue_unit, (int, float)):
        _check_positive("queue_unit", [queue_unit])
    _check_positive("weight", weights)
    _check_positive("queue_unit", units)
    if count and min(queued_rows) < 0:
        raise ValueError(f"a queue holds {min(queued_rows)} rows")
    return units


def _check_positive(name: str, values: Sequence[float]) -> None:
    for value in values:
        if not 0.0 < value < math.inf:
            raise ValueError(f"{name} must be finite and greater than 0, not {value}")
