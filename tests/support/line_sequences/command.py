"""Sequences of seeds that are printed, in processes of their own."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping

from support.python_code import with_tests

# Of one process: each sequence leaves some open files in it.
SEQUENCES = 25


def require_green(
    *,
    timeout_seconds: float,
    seconds: float = 0,
    processes: int = 1,
    cpu_seconds: float = 1e9,
    seed: int | None = None,
    enough: Callable[[Mapping[str, Counter[str]]], bool] = lambda _counts: False,
) -> dict[str, Counter[str]]:
    """Fail with what was found, if anything was; else how often there was what, by its name.

    seed: of the first sequence; by default another one each time. seconds: so long, new processes
    are started, as many at a time as there are to be; 0: once. enough: whether to stop before.
    """
    first = random.SystemRandom().randrange(10**6) * 1000 if seed is None else seed
    seeds = itertools.count(first, SEQUENCES)
    counts: dict[str, Counter[str]] = {}
    began = time.monotonic()
    while True:
        started = [_start(next(seeds), cpu_seconds) for _ in range(processes)]
        for each in started:
            out, told = each.communicate(timeout=timeout_seconds)
            assert each.returncode == 0, told[-20_000:]
            for name, found in json.loads(out).items():
                if isinstance(found, dict):
                    counts.setdefault(name, Counter()).update(found)
        if time.monotonic() - began > seconds or enough(counts):
            print(json.dumps(counts, indent=1))
            return counts


def _start(seed: int, cpu_seconds: float) -> subprocess.Popen[str]:
    options = {"seed": seed, "sequences": SEQUENCES, "cpu-seconds": cpu_seconds}
    words = [f"--{name}={value}" for name, value in options.items()]
    return subprocess.Popen(
        [sys.executable, "-m", "support.line_sequences", *words],
        env=with_tests(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
