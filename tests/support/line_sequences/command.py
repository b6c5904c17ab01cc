"""Sequences of seeds that are printed, in processes of their own."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[2]
# More than any process plays.
MANY = 10**5


def require_green(
    *options: str, timeout_seconds: float, processes: int = 1
) -> dict[str, Counter[str]]:
    """Fail with what was found, if anything was; else how often there was what, by its name."""
    seed = random.SystemRandom().randrange(10**6)
    counts: dict[str, Counter[str]] = {}
    started = [_start(seed + number * MANY, *options) for number in range(processes)]
    for each in started:
        out, told = each.communicate(timeout=timeout_seconds)
        print(out)
        assert each.returncode == 0, f"from seed {seed}\n{told[-20_000:]}"
        for name, found in json.loads(out).items():
            if isinstance(found, dict):
                counts.setdefault(name, Counter()).update(found)
    return counts


def _start(seed: int, *options: str) -> subprocess.Popen[str]:
    of_seed = ["--seed", str(seed), "--sequences", str(MANY)]
    return subprocess.Popen(
        [sys.executable, "-m", "support.line_sequences", *of_seed, *options],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
