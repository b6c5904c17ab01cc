"""ScoreColumn: which model's answer a column of scores is, and its name where scores are kept."""

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

    variant: a paradigm, with its correction of late labels if it has one. tower: of which tower, if
    it is not the one that answers. seed: how much was added to the model's seed; 0 is the one that
    serves. label: the label that it predicts, if it is not the first.
    """

    variant: str
    tower: str = ""
    seed: int = 0
    label: str = ""

    @property
    def name(self) -> str:
        tower = f"/{self.tower}" if self.tower else ""
        seed = f"@{self.seed}" if self.seed else ""
        label = f"{self.label}:" if self.label else ""
        return f"{label}{self.variant}{tower}{seed}"

    @classmethod
    def named(cls, name: str) -> Self:
        """The column with this name.

        Raises:
            ValueError: for a text that is not such a name.
        """
        found = _NAMED.fullmatch(name)
        if found is None:
            raise ValueError(f"{name!r} is not the name of a score column")
        seed = int(found["seed"] or 0)
        return cls(found["variant"], found["tower"] or "", seed, found["label"] or "")


def over_seeds(names: Iterable[str]) -> dict[ScoreColumn, tuple[int, ...]]:
    """The places of columns by model, without the seed; for each, its seeds in order.

    The keys are columns without a seed, in the order in which they come first.

    Raises:
        ValueError: for a text that is not the name of a column.
    """
    found: dict[ScoreColumn, list[tuple[int, int]]] = {}
    for place, name in enumerate(names):
        column = ScoreColumn.named(name)
        found.setdefault(replace(column, seed=0), []).append((column.seed, place))
    return {key: tuple(place for _, place in sorted(seeds)) for key, seeds in found.items()}
