"""ScoreColumn: whose answer a column of scores is, and how it is named where scores are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

_NAMED = re.compile(
    r"(?:(?P<label>[^:/@]+):)?(?P<variant>[^:/@]+)(?:/(?P<tower>[^/@]+))?(?:@(?P<seed>[1-9][0-9]*))?"
)


@dataclass(frozen=True)
class ScoreColumn:
    """One column of scores: `mixture+head`, `mixture+head/memory`, `stream@2`, `sale:stream`.

    variant: a paradigm, with its correction of late labels if it has one. tower: of which tower,
    where it is not the one that answers. seed: how many times the model's seed was counted up; 0
    is the one that serves. label: what it expects, where that is not the first label.
    """

    variant: str
    tower: str = ""
    seed: int = 0
    label: str = ""

    @property
    def name(self) -> str:
        """As it is written in segments and summaries."""
        tower = f"/{self.tower}" if self.tower else ""
        seed = f"@{self.seed}" if self.seed else ""
        label = f"{self.label}:" if self.label else ""
        return f"{label}{self.variant}{tower}{seed}"

    @classmethod
    def named(cls, name: str) -> Self:
        """The column of a name.

        Raises:
            ValueError: for a text that is not such a name.
        """
        found = _NAMED.fullmatch(name)
        if found is None:
            raise ValueError(f"{name!r} names no column of scores")
        seed = int(found["seed"] or 0)
        return cls(found["variant"], found["tower"] or "", seed, found["label"] or "")


def over_seeds(names: Iterable[str]) -> dict[ScoreColumn, tuple[int, ...]]:
    """The places of columns by whose answer they are, each with its seeds in order.

    The keys are columns without a seed, in the order in which they come first.

    Raises:
        ValueError: for a text that is not the name of a column.
    """
    found: dict[ScoreColumn, list[tuple[int, int]]] = {}
    for place, name in enumerate(names):
        column = ScoreColumn.named(name)
        found.setdefault(replace(column, seed=0), []).append((column.seed, place))
    return {key: tuple(place for _, place in sorted(seeds)) for key, seeds in found.items()}
