"""Estimate: a figure and its interval. Whoever only reads figures needs nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% interval."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        """The three figures as a JSON object."""
        return asdict(self)

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is on one side of 0."""
        return self.low > 0 or self.high < 0
