"""Row sums: a model's account of the rows that it has seen."""

from __future__ import annotations

from forebay.system.message import Message


class RowSums(Message):
    """Count, sum and sum of squares of the row ids of one source, as wrapping int64."""

    rows: int = 0
    sum: int = 0
    sum_of_squares: int = 0
