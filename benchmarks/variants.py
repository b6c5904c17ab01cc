"""Every variant that the benchmarks of learning compare, as `train` declares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

PARADIGMS = ("batch", "stream", "batch_then_stream", "mixed", "mixture")
SINGLE_TOWERS = PARADIGMS[:-1]
CORRECTED = PARADIGMS[1:]


class Tuned(NamedTuple):
    """Variants with options of the model other than the defaults; `label` follows their names."""

    label: str
    variants: tuple[dict[str, str], ...]
    model: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """The options by dotted key, as a pipeline declares them."""
        return {
            f"model.{part}.{key}": value
            for part, options in self.model.items()
            for key, value in options.items()
        }

    def named(self, variant: str) -> str:
        """What tables call a variant with these options."""
        return f"{variant}, {self.label}"


# The adapt tower goes on with batch rows: where labels are late, the stream teaches too little.
BOTH_FEEDS = Tuned(
    "both feeds",
    (
        {"paradigm": "mixture", "delay": "head"},
        {"paradigm": "mixture"},
        {"paradigm": "mixture", "delay": "fnw"},
    ),
    {"mixture": {"adapt_learns": "both", "gain": 0.3}},
)


def variants(delays: Sequence[str]) -> list[dict[str, str]]:
    """Every paradigm, then each that reads a stream with these corrections of late labels."""
    plain = [{"paradigm": name} for name in PARADIGMS]
    return plain + [{"paradigm": name, "delay": delay} for delay in delays for name in CORRECTED]


def train_of(wanted: list[dict[str, str]], *, guard: bool = False) -> dict[str, Any]:
    """What `train` declares for these variants; the first one serves."""
    first, *others = wanted
    compare = [each if "delay" in each else each["paradigm"] for each in others]
    return {**first, "compare": compare, "guard": guard}
