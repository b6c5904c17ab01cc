"""The sequences of tests/property/test_line_sequences.py, until all has happened many times."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.line_sequences.counts import REFUSALS
from support.line_sequences.declared import CHANGES
from support.line_sequences.machine import WEIGHTS
from support.python_code import require_green

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(2400)]
# It ends once each was met so often, or after 20 minutes; on busy processors rare ones are fewer.
TIMES, TIMES_LEAST = 20, 2
SEQUENCES = 25


def test_each_operation_and_each_refusal_was_met_many_times() -> None:
    """Again with a seed that it prints: `python -m support.line_sequences --seed S --shrink`."""
    seen = _all_green(seconds=1200, processes=2)
    assert _seldom(seen, TIMES_LEAST) == {}


def _all_green(seconds: float, processes: int) -> dict[str, Counter[str]]:
    """How often there was what, by its name, in sequences of seeds that were never drawn before.

    So long, new processes are started; each sequence leaves some open files in its own.
    """
    first = random.SystemRandom().randrange(10**6) * 1000
    seeds = itertools.count(first, SEQUENCES)
    counts: dict[str, Counter[str]] = {}
    began = time.monotonic()
    while time.monotonic() - began < seconds and (not counts or _seldom(counts, TIMES)):
        with ThreadPoolExecutor(processes) as pool:
            for told in pool.map(_one_green, itertools.islice(seeds, processes)):
                for name, found in told.items():
                    counts.setdefault(name, Counter()).update(found)
    print(json.dumps(counts, indent=1))
    return counts


def _one_green(seed: int) -> dict[str, dict[str, int]]:
    words = ("--sequences", str(SEQUENCES))
    # Beside other tests they take up to seven minutes.
    found: dict[str, dict[str, int]] = json.loads(
        require_green("support.line_sequences", *words, seed=seed, seconds=900)
    )
    return found


def _seldom(seen: Mapping[str, Counter[str]], times: int) -> dict[str, int]:
    keys = {".".join(place[1:]) for place in CHANGES}
    wanted = {"operations": WEIGHTS, "refusals": REFUSALS, "changes": keys, "undone": keys}
    return {
        f"{what}: {name}": seen[what][name]
        for what, names in wanted.items()
        for name in names
        if seen[what][name] < times
    }
