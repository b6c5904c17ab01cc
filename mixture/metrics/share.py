"""Share: so many of so many, with an interval. Code that only reads figures needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

_Z = 1.959963984540054  # of a 95% interval


@dataclass(frozen=True)
class Share:
    """`part` of `whole`, a positive number, with the 95% interval of the share."""

    part: int
    whole: int
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.part / self.whole

    @classmethod
    def of(cls, parts: Sequence[int], wholes: Sequence[int]) -> Self | None:
        """The share over groups of rows that were sampled together; None if there are no rows.

        The interval is Wilson's (1927, JASA 22), for the effective number of rows, as if each had
        been sampled independently: rows of one hour are alike, and the ratio estimator over groups
        (Cochran, Sampling Techniques, 1977, eq. 6.13) says how much.
        """
        part, whole = sum(parts), sum(wholes)
        if not whole:
            return None
        rows = whole / _design_effect(parts, wholes)
        share, square = part / whole, _Z * _Z
        middle = (share + square / (2 * rows)) / (1 + square / rows)
        half = _Z / (1 + square / rows) * math.sqrt(
            share * (1 - share) / rows + square / (4 * rows * rows)
        )  # fmt: skip
        low, high = min(share, middle - half), max(share, middle + half)
        return cls(part, whole, max(0.0, low), min(1.0, high))

    @property
    def words(self) -> str:
        """`45% (43%-48%) of 1,204`; rounded down, never up."""
        low, high = (f"{math.floor(100 * each)}%" for each in (self.low, self.high))
        return f"{100 * self.part // self.whole}% ({low}-{high}) of {self.whole:,}"

    def as_json(self) -> dict[str, float | int]:
        return {"share": self.value, **asdict(self)}


def _design_effect(parts: Sequence[int], wholes: Sequence[int]) -> float:
    """How many times larger the variance is than for rows sampled independently; at least 1."""
    part, whole = sum(parts), sum(wholes)
    groups = sum(1 for each in wholes if each)
    share = part / whole
    alone = share * (1 - share) / whole
    if groups < 2 or not alone:
        return 1.0
    squares = sum((one - share * of) ** 2 for one, of in zip(parts, wholes, strict=True))
    together = groups / (groups - 1) * squares / whole**2
    return max(1.0, together / alone)
