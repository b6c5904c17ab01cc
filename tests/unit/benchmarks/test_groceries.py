"""Labels of the groceries, by looking through a household's later purchases one by one."""

from __future__ import annotations

import groceries
import numpy as np

WEEK_US = 7 * 86_400_000_000


def test_what_is_bought_again_within_a_week_is_known_at_the_next_purchase() -> None:
    rows = groceries.purchases()
    assert rows["at"].is_monotonic_increasing
    chosen = np.random.default_rng(7).choice(len(rows), 60, replace=False)
    of = rows.groupby(["household", "category"]).indices
    at = rows["at"].to_numpy()
    for row in chosen.tolist():
        same = of[rows["household"][row], rows["category"][row]]
        later = [time for time in at[same[same > row]].tolist() if time - at[row] <= WEEK_US]
        assert rows["bought"][row] == bool(later)
        assert rows["known_at"][row] == min(later, default=at[row] + WEEK_US)
    assert 0 < groceries.known_share(rows, 24) < groceries.known_share(rows, 72) < 1
    assert groceries.known_share(rows, 7 * 24) == 1
