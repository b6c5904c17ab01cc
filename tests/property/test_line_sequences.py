"""Whatever is changed in a declaration, and changed back: no row is left out that nobody names.

Runs, reprocesses, refusals, forgotten windows, changes of keys of sources and of the dataset, late
rows, partitions that come and go, two lines, in random sequences. After each operation an
independent count says which rows each model has, and what a refusal may not change is as it was.
"""

from __future__ import annotations

import pytest
from support.line_sequences.command import require_green

pytestmark = pytest.mark.timeout(600)


def test_no_row_is_lost_in_silence() -> None:
    """Always the same sequences; `make chaos` draws others."""
    seen = require_green(cpu_seconds=45, timeout_seconds=550, seed=5000)
    for name in ("run the next windows", "reprocess", "change", "undo", "forget", "follow why"):
        assert seen["operations"][name], name
