"""Estimate: a figure and its interval. Whoever only reads figures needs nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass

# Two seeds say next to nothing of how far seeds are apart.
SEEDS_MIN = 3


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% interval.

    seeds: how many seeds were trained; the figure is their mean. From `SEEDS_MIN` on the interval
    covers that others could have been drawn, below that other rows only.
    """

    value: float
    low: float
    high: float
    seeds: int = 1

    def as_json(self) -> dict[str, float]:
        """Everything of it as a JSON object."""
        return asdict(self)

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is on one side of 0."""
        return self.low > 0 or self.high < 0

    @property
    def covers(self) -> str:
        """What the interval allows for, in words."""
        return "rows only" if self.seeds < SEEDS_MIN else f"rows and {self.seeds} seeds"
