"""Whatever happens to a pipeline in whatever order: each row is in one trained window of a line.

Appends in time, late and from the future, files that come, change and go, plans, runs, reprocesses,
forgets, lines, and kills at any point, in random sequences. After each step an independent count
says which rows each window has.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(600)
TESTS = Path(__file__).parents[1]
EXAMPLES, STEPS = 6, 25


def test_each_row_is_in_exactly_one_window() -> None:
    """Again with the seed that it prints: `python -m support.sequences --seed S --shrink`."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    counts = ("--seed", str(seed), "--examples", str(EXAMPLES), "--steps", str(STEPS))
    done = subprocess.run(
        [sys.executable, "-m", "support.sequences", *counts],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, f"seed {seed}\n{done.stderr[-20_000:]}"
