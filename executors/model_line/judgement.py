"""What is known of a trained window: rows of each source, and figures of its scores.

Judgements are stored with links. The windows of a summary have the same form.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from forebay.config.specs.datasets import Feed
from forebay.datatasks.plans.plan import SourcePlan
from forebay.datatasks.tasks import NO_OFFSETS, OffsetsRead
from forebay.executors.model_line.coverage import Offsets, Span
from forebay.executors.model_line.link import Link, Parent, ReadRows
from forebay.mixture.left_out import unsaid
from forebay.mixture.metrics.figures import LabelPart
from forebay.system.message import Kept

Repeats = dict[str, int]  # see `repeats_of`


class SourceFacts(Kept):
    """Rows of one source in one window, as its plan, its readers and the model counted them.

    planned_rows: what planning learnt from the storage; None if they are unknown before reading.
    served_rows: handed out by data executors. trained_rows: the model's own count. planned_offsets:
    of a stream whose rows are unknown; read_offsets: those of them that data executors read. See
    `ReadRows` and `Coverage`.
    """

    data_from: str = ""
    data_to: str = ""
    feed: Feed = "batch"
    planned_rows: int | None = None
    served_rows: int = 0
    trained_rows: int = 0
    learnt_rows: dict[str, int] = Field(default_factory=dict)
    dead_letter_rows: int = 0
    label_not_known_rows: int = 0
    late_rows: int = 0
    odd_timestamps: int = 0
    first_odd: str = ""
    offsets: Offsets = Field(default_factory=dict)
    planned_offsets: int | None = None
    read_offsets: OffsetsRead = NO_OFFSETS
    reason: str = ""
    gap: Span | None = None

    @classmethod
    def of(cls, plan: SourcePlan, link: Link) -> SourceFacts:
        read, covered = link.read.get(plan.source, ReadRows()), link.coverage.get(plan.source)
        offsets: int | None = None  # planned ones, where rows could not be counted
        if plan.rows is None and plan.offsets:
            offsets = sum(end - first for first, end in plan.offsets.values())
        return cls(
            data_from=plan.data_from.isoformat(),
            data_to=plan.data_to.isoformat(),
            feed=plan.feed,
            planned_rows=plan.rows,
            served_rows=read.rows,
            trained_rows=link.trained(plan.source).rows,
            learnt_rows=link.learnt.get(plan.source, {}),
            dead_letter_rows=read.dead,
            label_not_known_rows=read.label_not_known,
            late_rows=read.late,
            odd_timestamps=read.odd_timestamps,
            first_odd=read.first_odd,
            offsets=plan.offsets,
            planned_offsets=offsets,
            read_offsets=read.offsets,
            reason=plan.reason,
            gap=covered.gap if covered else None,
        )

    @property
    def agree(self) -> bool:
        """Planned = served = trained + dead + not known, and each planned offset was read."""
        found = self.trained_rows + self.dead_letter_rows + self.label_not_known_rows
        return (
            self.served_rows == found
            and self.planned_rows in {None, self.served_rows}
            and self.planned_offsets in {None, self.read_offsets.total}
        )

    def difference(self, window: str, source: str) -> str:
        planned, read = self.planned_offsets, self.read_offsets
        offsets = ""
        if planned not in {None, read.total}:
            offsets = f"; {planned:,} planned offsets, but {read.total:,} were read: {read.text}"
        left_out = self.label_not_known_rows
        not_known = f", label not known {left_out}" if left_out else ""
        return (
            f"rows DISAGREE in window {window}, source {source}: planned {self.planned_rows}, "
            f"served {self.served_rows}, trained {self.trained_rows}, "
            f"dead {self.dead_letter_rows}{not_known}{offsets}"
        )


class StreamOffset(Kept):
    """See `achieved_offsets`."""

    offset_seconds: int
    measured_seconds: tuple[float, float] | None = None


class Series(Kept):
    """What a trainer recorded over the steps of a window: lists of equal length, not empty.

    rows: of the window so far, by source. losses: mean since the previous point, by paradigm and
    feed; None if there was no step.
    """

    steps: list[int]
    seconds: list[float]
    lag_seconds: list[int]
    rows: dict[str, list[int]]
    losses: dict[str, list[float | None]] = Field(default_factory=dict)


# Not in every document: of several labels only, of judgements only, and of summaries only.
_SOMETIMES = {"labels", "rows_agree", "rows_line", "series"}


class Judgement(LabelPart):
    """Rows and figures of a window; figures are by the only label, or the first of several.

    resumed_from_step, resumed_from_runtime: see `Link`. stream_offsets: see `achieved_offsets`.
    stale: why its model is, see `ModelChain`. data_changed: since its plan, see `Ledger`.
    repeated_events: by feed, see `repeats_of`. labels: the figures by each label after the first.
    """

    window: str
    generation: int
    parent: Parent | None = None
    resumed_from_step: int = 0
    resumed_from_runtime: str | None = None
    reread_rows: int = 0
    steps: int = 0
    sources: dict[str, SourceFacts]
    stream_offsets: dict[str, StreamOffset] = Field(default_factory=dict)
    stale: str | None = None
    data_changed: str | None = None
    repeated_events: dict[str, Repeats] | None = None
    labels: dict[str, LabelPart] = Field(default_factory=dict)
    rows_agree: bool | None = None
    rows_line: str = ""
    series: Series | None = None

    @model_serializer(mode="wrap")
    def _told(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        absent = _SOMETIMES - self.model_fields_set
        return {name: value for name, value in fields(self).items() if name not in absent}

    def part(self, label: str) -> LabelPart:
        """By one label, see `label_key`; empty for one that was not trained on then."""
        return self.labels.get(label, LabelPart()) if label else self

    def by_label(self, part: LabelPart) -> Judgement:
        """With these figures by its only label, or the first."""
        return self.model_copy(
            update={name: getattr(part, name) for name in LabelPart.model_fields}
        )

    @property
    def name(self) -> Parent:
        return Parent(window=self.window, generation=self.generation)

    @property
    def rows(self) -> dict[Feed, int]:
        """Rows trained on."""
        rows: dict[Feed, int] = {"batch": 0, "stream": 0}
        for source in self.sources.values():
            rows[source.feed] += source.trained_rows
        return rows

    @property
    def dead(self) -> int:
        return sum(source.dead_letter_rows for source in self.sources.values())

    def not_known(self, label: str) -> int:
        """Rows that were not trained on, as their label, or this one, was not known in time."""
        return sum(
            source.label_not_known_rows + unsaid(source.learnt_rows).get(label, 0)
            for source in self.sources.values()
        )

    @property
    def has_stream(self) -> bool:
        return any(source.feed == "stream" for source in self.sources.values())

    @property
    def positives_known(self) -> float | None:
        """The share of positives known at publication; None where no stream is read."""
        found = self.label_completeness
        return found.share if found and self.has_stream else None
