"""Row sums: what a model records of the rows that it has seen."""

from __future__ import annotations

from forebay.mixture.row_sums import RowSums


def test_a_model_that_has_seen_nothing() -> None:
    assert RowSums().model_dump() == {"rows": 0, "sum": 0, "sum_of_squares": 0}
