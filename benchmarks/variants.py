"""Every variant that the benchmarks of learning compare, as `train` declares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PARADIGMS = ("batch", "stream", "batch_then_stream", "mixed", "mixture")
CORRECTED = PARADIGMS[1:]


def variants(delays: Sequence[str]) -> list[dict[str, str]]:
    """Every paradigm, then each that reads a stream with these corrections of late labels."""
    plain = [{"paradigm": name} for name in PARADIGMS]
    return plain + [{"paradigm": name, "delay": delay} for delay in delays for name in CORRECTED]


def train_of(wanted: list[dict[str, str]], *, guard: bool = False) -> dict[str, Any]:
    """What `train` declares for these variants; the first one serves."""
    first, *others = wanted
    compare = [each if "delay" in each else each["paradigm"] for each in others]
    return {**first, "compare": compare, "guard": guard}
