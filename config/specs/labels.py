"""Labels: which column says what is positive, when it is known, and how late labels are handled."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from forebay.config.specs.base import Duration, Spec
from forebay.config.specs.models import Delay, Variant

LabelValues = bool | int | float | str | list[bool | int | float | str]


class LabelSpec(Spec):
    """Which rows are positive: `positive` lists values, or a number is above/below a bound.

    Without any of the three, true or any number other than 0 is positive.
    """

    column: str = Field(description="Column that holds the label")
    positive: LabelValues | None = Field(
        default=None,
        description="A row with this value, or one of these values, is positive. By default true "
        "and any number other than 0",
    )
    negative: LabelValues | None = Field(
        default=None,
        description="With `positive`: the values of negative rows. A row with any other value is "
        "bad (`bad_rows` of its source). Without `negative`, every other value is negative, except "
        "null and the empty text, which is null too",
    )
    greater_than: float | None = Field(
        default=None, description="A row with a larger number is positive"
    )
    less_than: float | None = Field(
        default=None, description="A row with a smaller number is positive"
    )
    known_at: str | None = Field(
        default=None,
        description="Timestamp column of the sources that feed batch: when the row's label became "
        "known. The run of window W trains on a row only if that was before the end of W, and "
        "counts the others as label_not_known. By default, when the row is read",
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        rules = (self.positive, self.greater_than, self.less_than)
        if sum(rule is not None for rule in rules) > 1:
            raise ValueError("give one of positive, greater_than and less_than, not several")
        return self

    @property
    def correction(self) -> Delay | None:
        """How variants that correct late labels correct this one; None: by their own method."""
        return self.delay if isinstance(self, NamedLabelSpec) else None

    @property
    def share_of_loss(self) -> float:
        """Factor on the label's loss in the sum that training minimises."""
        return self.weight if isinstance(self, NamedLabelSpec) else 1.0

    @property
    def join_within(self) -> timedelta | None:
        """How far back copies of its batch rows are searched for; None: as the dataset says."""
        return self.label_join if isinstance(self, NamedLabelSpec) else None


class NamedLabelSpec(LabelSpec):
    """One of several labels. A row without it still trains the others.

    delay: how a variant that corrects late labels (`train.delay`, `train.compare`) corrects this
    one: `none` if it is known immediately; `head` or `fnw` in place of the variant's own method.
    """

    delay: Delay | None = Field(
        default=None,
        description="How variants that correct late labels correct this one; by default by their "
        "own method",
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        description="Factor on the label's loss in the sum that training minimises",
    )
    label_join: Duration | None = Field(
        default=None, description="In place of `dataset.label_join`, for this label alone"
    )


def delay_of(label: LabelSpec, variant: Variant) -> Delay:
    """How a variant corrects a label: not at all, as the label declares, or as the variant does."""
    if variant.delay == "none":
        return "none"
    return variant.delay if label.correction is None else label.correction
