"""The sequences of tests/property/test_sequences.py, with a topic of a real broker as the stream.

Producers with and without transactions write it, transactions are aborted or stay open while
windows are planned, it gets partitions, and its oldest records are deleted.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.chaos, pytest.mark.kafka, pytest.mark.timeout(1200)]
TESTS = Path(__file__).parents[1]
EXAMPLES, STEPS = 8, 30


def test_each_record_is_in_exactly_one_window(kafka_bootstrap: str) -> None:
    """Again, by its seed: `python -m support.sequences --seed S --broker ADDRESS`."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    counts = ("--seed", str(seed), "--examples", str(EXAMPLES), "--steps", str(STEPS))
    done = subprocess.run(
        [sys.executable, "-m", "support.sequences", *counts, "--broker", kafka_bootstrap],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, f"seed {seed}\n{done.stderr[-20_000:]}"
