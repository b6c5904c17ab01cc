"""DatasetSpec: streams cut by one window, event identity, labels and features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Annotated, Literal, NamedTuple, Self
from zoneinfo import available_timezones

from pydantic import Field, field_validator, model_validator

from forebay.config.specs.base import Duration, Instant, Spec
from forebay.config.specs.features import FeatureSpec, NumericFeature
from forebay.config.specs.labels import LabelSpec, NamedLabelSpec
from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.system.names import is_name, shown

# Tasks, rows, row sums, dead letters and scores are counted per use. A source that one stream reads
# has one use, with the same name as the source; if several streams read it, the name of each use
# also contains the stream.

# No name of a source or stream contains it.
AT = "@"


class SourceUse(NamedTuple):
    """One source in one stream. name: `clicks`, or `clicks@yesterday` beside another use of it."""

    name: str
    source: str
    stream: str


def source_uses(streams: Mapping[str, Sequence[str]]) -> list[SourceUse]:
    """The uses of all sources, in declared order. streams: names of sources by stream."""
    pairs = [(stream, name) for stream, names in streams.items() for name in dict.fromkeys(names)]
    readers = Counter(name for _, name in pairs)
    return [
        SourceUse(name if readers[name] == 1 else f"{name}{AT}{stream}", name, stream)
        for stream, name in pairs
    ]


class Doubled(NamedTuple):
    """A source at one position of a stream's list whose rows an earlier position already reads.

    first: the stream of the earlier position.
    """

    source: str
    stream: str
    place: int
    first: str


def doubled_sources(
    streams: Mapping[str, Sequence[str]], offsets: Mapping[str, timedelta]
) -> Iterator[Doubled]:
    """Positions that give a window the same rows again: the same source with the same offset.

    streams: names of sources by stream. offsets: of the streams; a stream whose offset is not known
    is not compared with others.
    """
    seen: dict[tuple[str, timedelta | str], str] = {}
    for stream, names in streams.items():
        for place, name in enumerate(names):
            rows = name, offsets.get(stream, stream)
            if rows in seen:
                yield Doubled(name, stream, place, seen[rows])
            seen.setdefault(rows, stream)


def source_of(use: str) -> str:
    return use.partition(AT)[0]


def stream_of(use: str) -> str:
    """The stream that a use names; empty if no other stream reads its source."""
    return use.partition(AT)[2]


def is_use_name(text: str) -> bool:
    source, at, stream = text.partition(AT)
    return is_name(source) and (is_name(stream) if at else True)


Feed = Literal["batch", "stream"]
LABELS_MAX = 8


@cache
def time_zones() -> frozenset[str]:
    """Names of all time zones. Cached: listing them opens some 600 files."""
    return frozenset(available_timezones())


class StreamSpec(Spec):
    """Sources read together with one offset.

    `offset: 24h` means that the run of window W reads the rows of W minus 24 hours. `feed` says
    what the rows are used for: by default bounded sources feed `batch`, unbounded ones `stream`.
    `weight` is w in Primus Eq. 4; `floor` is the smallest share of rows that the stream gets.
    """

    sources: list[str] = Field(
        min_length=1,
        description="Sources that are read together. Another stream may read the same ones with a "
        "different offset",
    )
    offset: Duration = Field(
        default=timedelta(0),
        description="How much older the rows are than the window that reads them: `24h` reads "
        "the day before",
    )
    feed: Feed | None = Field(
        default=None,
        description="What the rows are: `batch`, history with complete labels, or `stream`, fresh "
        "rows whose labels may be missing. By default bounded sources feed `batch`, unbounded ones "
        "`stream`",
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        description="Factor on the stream's priority; rows of the stream with the highest priority "
        "are served next (w in Primus Eq. 4)",
    )
    floor: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Smallest share of rows that the stream gets while it has any",
    )


class DatasetSpec(Spec):
    """Streams of one dataset, cut by the same window."""

    window: WindowSize = Field(
        default=WindowSize.DAY, description="Length of a window: an hour or a day"
    )
    timezone: str = Field(
        default="UTC", description="Time zone (IANA name) of the windows' hours and days"
    )
    start: Instant = Field(description="The first window contains this instant")
    end: Instant | None = Field(default=None, description="No window starts at or after this")
    event_id: str | list[str] = Field(description="Column or columns that identify one event")
    label: LabelSpec | None = Field(
        default=None,
        description="Which rows are positive. Keys as in `named_labels.NAME`, without `delay`, "
        "`weight` and `label_join`. Required, unless there are `named_labels`",
    )
    named_labels: dict[str, NamedLabelSpec] = Field(
        default={},
        max_length=LABELS_MAX,
        description="Several labels in place of `label`, by name: one model predicts all of them, "
        "with an output for each. The first one decides what serves, unless `job.publish.label` "
        "names another",
    )
    label_join: Duration | None = Field(
        default=None,
        description="How far back before a window the stream's copies of the window's batch rows "
        "are searched for, by event id. Default: the largest offset. Set it longer if batch "
        "rows are stored by a time other than their event's. Each of several labels may have its "
        "own",
    )
    streams: dict[str, StreamSpec] = Field(
        min_length=1, description="Groups of sources, by a name of your choice"
    )
    features: dict[str, Annotated[FeatureSpec, Field(discriminator="encode")]] = Field(
        min_length=1, description="What the model reads, by a name of your choice"
    )
    slices: list[str] = Field(
        default=[],
        max_length=8,
        description="At most eight features for whose values event scores are also shown "
        "separately. Not numeric features or lists",
    )
    queue_unit: float = Field(
        default=1.0,
        gt=0,
        description="How many queued rows count as 1 in a stream's priority, weight times "
        "sigmoid(queued rows / queue_unit) (Primus Eq. 4)",
    )
    plan_ahead_windows: int = Field(
        default=400, ge=1, description="Most windows planned in one scan"
    )

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value not in time_zones():
            raise ValueError(f"unknown IANA time zone {value!r} (for example UTC, Europe/Berlin)")
        return value

    @model_validator(mode="after")
    def _one_label_or_several(self) -> Self:
        if self.label is None and not self.named_labels:
            raise ValueError("label is missing: name the column that says what is positive")
        if self.label is not None and self.named_labels:
            raise ValueError("give either label or, for several, named_labels, not both")
        if len(self.named_labels) == 1:
            raise ValueError("named_labels has only one label: write it as `label`, without a name")
        return self

    @model_validator(mode="after")
    def _sliced_by_ids(self) -> Self:
        for name in self.slices:
            feature = self.features.get(name)
            if feature is None:
                raise ValueError(
                    f"slices: {shown(name)} is not a feature: {', '.join(self.features)}"
                )
            if isinstance(feature, NumericFeature):
                raise ValueError(
                    f"slices: feature {name!r} is numeric: declare another feature of its column "
                    "with encode: bucketise, and list that one"
                )
        if len(set(self.slices)) != len(self.slices):
            raise ValueError("slices lists a feature twice")
        return self

    @property
    def targets(self) -> Mapping[str, LabelSpec]:
        """Labels of the model: several by name, in declared order; a single one by ""."""
        return self.named_labels if self.label is None else {"": self.label}

    def label_named(self, name: str) -> LabelSpec:
        """A label by name; "" is the only one, or the first of several."""
        return self.targets[name] if name else next(iter(self.targets.values()))

    @property
    def further_labels(self) -> list[str]:
        return list(self.targets)[1:]

    def label_key(self, name: str | None) -> str:
        """Key of a label's scores: "" for the first or only label, the name for any other."""
        return name if name in self.further_labels else ""

    @property
    def grid(self) -> WindowGrid:
        return WindowGrid(self.window, self.timezone)

    @property
    def event_id_columns(self) -> list[str]:
        return [self.event_id] if isinstance(self.event_id, str) else list(self.event_id)

    @property
    def doubled_sources(self) -> list[Doubled]:
        streams = {name: stream.sources for name, stream in self.streams.items()}
        offsets = {name: stream.offset for name, stream in self.streams.items()}
        return list(doubled_sources(streams, offsets))

    @property
    def offset_max(self) -> timedelta:
        return max(stream.offset for stream in self.streams.values())

    @property
    def joined_within(self) -> timedelta:
        """`label_join`, or its default."""
        return self.offset_max if self.label_join is None else self.label_join

    def label_joined_within(self, name: str) -> timedelta:
        """The same of one label; see `label_named`."""
        own = self.label_named(name).join_within
        return self.joined_within if own is None else own

    @property
    def label_delay(self) -> timedelta:
        """How long after an event its complete label may arrive."""
        joined = (self.label_joined_within(name) for name in self.targets)
        return max(self.offset_max, self.joined_within, *joined)

    @property
    def label_horizon(self) -> int:
        """How many windows after its own a row's complete label may still arrive.

        A row's batch copy arrives `offset` after the event, and its stream copy possibly after the
        event's window; one more window covers rows published after their window's end. If copies
        are searched for `label_join` back, labels may be as much later.
        """
        one = self.grid.at(self.start)
        return -(-self.label_delay // (one.end - one.start)) + 1
