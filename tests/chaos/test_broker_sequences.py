"""The sequences of tests/property/test_sequences.py, with a topic of a real broker as the stream.

Producers with and without transactions write it, transactions are aborted or stay open while
windows are planned, it gets partitions, and its oldest records are deleted.
"""

from __future__ import annotations

import pytest
from support.python_code import require_green

pytestmark = [pytest.mark.chaos, pytest.mark.kafka, pytest.mark.timeout(1200)]


def test_each_record_is_in_exactly_one_window(kafka_bootstrap: str) -> None:
    """Again, by its seed: `python -m support.sequences --seed S --broker ADDRESS`."""
    counts = ("--examples", "8", "--steps", "30")
    require_green("support.sequences", *counts, "--broker", kafka_bootstrap, seconds=1100)
