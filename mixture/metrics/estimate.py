"""Estimate: a figure and its interval. Code that only reads figures needs nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass

# Two seeds say almost nothing about how much seeds differ.
SEEDS_MIN = 3


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% interval.

    seeds: how many seeds were trained; the figure is their mean. From `SEEDS_MIN` seeds on, the
    interval covers the choice of seeds and of rows; below that, only of rows.
    """

    value: float
    low: float
    high: float
    seeds: int = 1

    def as_json(self) -> dict[str, float]:
        """All of it as a JSON object."""
        return asdict(self)

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is on one side of 0."""
        return self.low > 0 or self.high < 0

    @property
    def covers(self) -> str:
        """What the interval allows for, in words."""
        return "rows only" if self.seeds < SEEDS_MIN else f"rows and {self.seeds} seeds"
