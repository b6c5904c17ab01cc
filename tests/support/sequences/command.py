"""Sequences by a seed that is printed, in a separate process without threads."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]


def require_green(examples: int, steps: int, timeout_seconds: float, *more: str) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    counts = ("--seed", str(seed), "--examples", str(examples), "--steps", str(steps))
    done = subprocess.run(
        [sys.executable, "-m", "support.sequences", *counts, *more],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, f"seed {seed}\n{done.stderr[-20_000:]}"
