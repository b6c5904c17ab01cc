"""Odd declarations, files and messages: read as other programs read them, or refused with a place.

Files are written in every form that is read, and broken in many ways; declarations have odd values,
and say something else than what is stored. No command may print a traceback, or blame the machine
(exit code 4) for what a person wrote.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def require_green(seed: int, *limits: str) -> None:
    """Again with the seed that it prints: `python -m support.odd_inputs --seed S --only N`."""
    print(f"seed {seed}")
    done = subprocess.run(
        [sys.executable, "-m", "support.odd_inputs", "--seed", str(seed), *limits],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-20_000:]}"


@pytest.mark.timeout(600)
def test_odd_inputs_are_read_as_others_read_them_or_refused() -> None:
    """Always the same; `make chaos` draws others."""
    require_green(7106, "--seconds", "30", "--minutes", "5")


@pytest.mark.chaos
@pytest.mark.timeout(1500)
def test_many_odd_inputs() -> None:
    require_green(random.SystemRandom().randrange(10**6), "--examples", "5000", "--minutes", "9")
