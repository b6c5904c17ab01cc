"""Whatever happens to a pipeline in whatever order: each row is in one trained window of a line.

Appends in time, late and from the future, files that come, change and go, plans, runs, reprocesses,
forgets, lines, and kills at any point, in random sequences. After each step an independent count
says which rows each window has.
"""

from __future__ import annotations

import pytest
from support.python_code import require_green

pytestmark = pytest.mark.timeout(600)


@pytest.mark.guarantee(
    "any sequence of appends, plans, runs, reprocesses, forgets, trims, file changes and kills",
    "nothing; each row is in one window of a line",
)
def test_each_row_is_in_exactly_one_window() -> None:
    """Again with the seed that it prints: `python -m support.sequences --seed S --shrink`."""
    require_green("support.sequences", "--examples", "6", "--steps", "25", seconds=500)
