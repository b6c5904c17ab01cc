"""DatasetSpec: streams cut by one window, event identity, label and features."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Annotated, Literal, Self
from zoneinfo import available_timezones

from pydantic import Field, field_validator, model_validator

from forebay.config.base import Duration, Instant, Spec
from forebay.config.features import FeatureSpec, NumericFeature
from forebay.config.windows import WindowGrid, WindowSize
from forebay.system.names import shown

Feed = Literal["batch", "stream"]


@cache
def _time_zones() -> frozenset[str]:
    """Names of all time zones: to list them, some 600 files are opened."""
    return frozenset(available_timezones())


class StreamSpec(Spec):
    """Sources read together with one offset.

    `offset: 24h` means that run W reads rows of W minus 24 hours. `feed` says which tower the
    rows train: bounded sources feed `batch`, unbounded ones `stream`, unless written here.
    `weight` is w in Primus Eq. 4; `floor` is the least share of rows that the stream gets.
    """

    sources: list[str] = Field(min_length=1)
    offset: Duration = timedelta(0)
    feed: Feed | None = None
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    floor: float = Field(default=0.0, ge=0, lt=1)


LabelValues = bool | int | float | str | list[bool | int | float | str]


class LabelSpec(Spec):
    """Which rows are positive: `positive` lists values, or a number lies above/below a bound.

    Without any of the three, true or any number other than 0 is positive.
    """

    column: str
    positive: LabelValues | None = None
    negative: LabelValues | None = Field(
        default=None,
        description="Beside `positive`: the other values that a label has. A row with any further "
        "one is bad (`bad_rows` of its source); without it, any further one is negative",
    )
    greater_than: float | None = None
    less_than: float | None = None
    known_at: str | None = Field(
        default=None,
        description="Timestamp column of the sources that feed batch: when the row's label became "
        "known. The run of window W learns a row only if that was before the end of W, and counts "
        "the others as label_not_known. Null: as soon as the row is read",
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        rules = (self.positive, self.greater_than, self.less_than)
        if sum(rule is not None for rule in rules) > 1:
            raise ValueError("give one of positive, greater_than and less_than, not several")
        return self


class DatasetSpec(Spec):
    """Streams of one dataset, cut by the same window."""

    window: WindowSize = WindowSize.DAY
    timezone: str = "UTC"
    start: Instant = Field(description="The first window that may run holds this instant")
    end: Instant | None = Field(default=None, description="No window starts at or after this")
    event_id: str | list[str] = Field(description="Column or columns that identify one event")
    label: LabelSpec
    label_join: Duration | None = Field(
        default=None,
        description="How long before a window copies of its batch rows may have been published in "
        "a stream, to be found by event id; as long as the largest offset unless written. Longer "
        "where batch rows are filed by another time than that of their event",
    )
    streams: dict[str, StreamSpec] = Field(min_length=1)
    features: dict[str, Annotated[FeatureSpec, Field(discriminator="encode")]] = Field(min_length=1)
    slices: list[str] = Field(
        default=[],
        max_length=8,
        description="Features by whose values event scores are shown too; no numbers, no lists",
    )
    queue_unit: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="Rows per unit of q in Primus Eq. 4"
    )
    plan_ahead_windows: int = Field(default=400, ge=1, description="Windows planned in one scan")

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value not in _time_zones():
            raise ValueError(f"unknown IANA time zone {value!r} (for example UTC, Europe/Berlin)")
        return value

    @model_validator(mode="after")
    def _sliced_by_ids(self) -> Self:
        for name in self.slices:
            feature = self.features.get(name)
            if feature is None:
                raise ValueError(f"slices: {shown(name)} is no feature: {', '.join(self.features)}")
            if isinstance(feature, NumericFeature):
                raise ValueError(
                    f"slices: feature {name!r} is a number: declare another feature of its column "
                    "with encode: bucketise, and name that one"
                )
        if len(set(self.slices)) != len(self.slices):
            raise ValueError("slices names one feature twice")
        return self

    @property
    def grid(self) -> WindowGrid:
        """The windows of this dataset."""
        return WindowGrid(self.window, self.timezone)

    @property
    def event_id_columns(self) -> list[str]:
        """Columns of the event identity, in order."""
        return [self.event_id] if isinstance(self.event_id, str) else list(self.event_id)

    @property
    def offset_max(self) -> timedelta:
        """The largest offset of a stream."""
        return max(stream.offset for stream in self.streams.values())

    @property
    def joined_within(self) -> timedelta:
        """`label_join`, or what it is unless written."""
        return self.offset_max if self.label_join is None else self.label_join

    @property
    def label_delay(self) -> timedelta:
        """How long after an event its complete label may come."""
        return max(self.offset_max, self.joined_within)

    @property
    def label_horizon(self) -> int:
        """Windows after its own in which a row's complete label may still come.

        A row's batch copy comes `offset` after it happened and its stream copy possibly later than
        that instant's window; one window more covers rows published after their window's end.
        Copies that are looked for `label_join` back have their labels as much later.
        """
        one = self.grid.at(self.start)
        return -(-self.label_delay // (one.end - one.start)) + 1
