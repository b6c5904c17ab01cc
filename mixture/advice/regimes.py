"""The table of measured regimes that advice is based on, in the format that a benchmark writes.

`regimes.json` beside this module holds one `RegimeTable`. A new measurement writes the whole
file; nothing else is read.
"""

from __future__ import annotations

import math
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from forebay.errors import DataError
from forebay.mixture.metrics.estimate import SEEDS_MIN, student_quantile
from forebay.system.message import Message

TABLE = Path(__file__).with_name("regimes.json")
_Share = Annotated[float, Field(ge=0, le=1)]
_Auc = Annotated[float, Field(ge=0, le=1)]


class MeasuredVariant(Message):
    """How a variant did in one regime, over all scored rows, judged by the complete label.

    variant: paradigm and correction, such as `mixture+head`. auc: the mean over seeds; auc_by_seed:
    one per seed, in the same order for all variants of the regime and as far apart as they were
    within it; empty if only the mean is known. calibration: predicted positives
    divided by actual ones.
    """

    variant: str
    auc: _Auc
    auc_by_seed: tuple[_Auc, ...] = ()
    normalised_entropy: float | None = None
    calibration: float | None = None


class Regime(Message):
    """Data of one kind, and how each variant did on it.

    data: a description of where the rows come from. completeness: share of complete positives that
    the stream knew when it published them. stream_share: share of all events that the stream has.
    crowded: whether an id feature has many times more values than its table has rows.
    """

    name: str
    data: str
    completeness: _Share
    stream_share: _Share = 1.0
    crowded: bool = False
    seeds: int = Field(ge=1)
    variants: tuple[MeasuredVariant, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.aucs) != len(self.variants):
            raise ValueError(f"regime {self.name!r} names one variant twice")
        for each in self.variants:
            if len(each.auc_by_seed) not in {0, self.seeds}:
                raise ValueError(
                    f"regime {self.name!r}, {each.variant}: {len(each.auc_by_seed)} seeds, "
                    f"not {self.seeds}"
                )
        return self

    @property
    def best(self) -> MeasuredVariant:
        return max(self.variants, key=lambda each: each.auc)

    @property
    def aucs(self) -> dict[str, float]:
        """By variant."""
        return {each.variant: each.auc for each in self.variants}

    def loss_of(self, variant: str) -> float:
        """AUC of the best variant minus that of this one."""
        return self.best.auc - self.aucs[variant]


class RegimeTable(Message):
    """Regimes in which the same variants were measured."""

    measured: date
    origin: str
    command: str = ""
    regimes: tuple[Regime, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        for each in self.regimes:
            if each.aucs.keys() != self.regimes[0].aucs.keys():
                raise ValueError(f"regime {each.name!r} measured other variants than the first one")
        return self


@cache
def measured_regimes() -> RegimeTable:
    return read_table(TABLE)


def read_table(path: Path) -> RegimeTable:
    """The table in a file.

    Raises:
        DataError: naming what is wrong in it.
    """
    try:
        return RegimeTable.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        raise DataError(f"{path} is not a table of measured regimes: {error}") from error


def difference_of(one: MeasuredVariant, other: MeasuredVariant) -> tuple[float, float | None]:
    """AUC of the one minus the other, and half of its 95% interval over seeds, if known.

    Seeds are paired: both were trained on the same rows in the same order.
    """
    seeds = len(one.auc_by_seed)
    if seeds < SEEDS_MIN or seeds != len(other.auc_by_seed):
        return one.auc - other.auc, None
    apart = [a - b for a, b in zip(one.auc_by_seed, other.auc_by_seed, strict=True)]
    mean = sum(apart) / seeds
    variance = sum((each - mean) ** 2 for each in apart) / (seeds - 1)
    return mean, student_quantile(seeds - 1) * math.sqrt(variance / seeds)
