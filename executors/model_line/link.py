"""What is known about a trained window: its place in the model chain, and what its model saw."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import Field

from forebay.config.specs.models import VARIANTS, Variant
from forebay.datatasks.plans.plan import SourcePlan
from forebay.datatasks.tasks import NO_OFFSETS, OffsetsRead
from forebay.executors.model_line.coverage import Coverage
from forebay.home.store.base import Stored
from forebay.mixture.row_sums import RowSums
from forebay.system.message import Message


class Parent(Message):
    window: str
    generation: int


class ReadRows(Message):
    """Rows of one source as data executors counted them: read, and how many of these were dead.

    late: served rows that came too late for the window of their time. odd_timestamps: rows whose
    time is after their window, the first of them at `first_odd`. label_not_known: rows left out
    because their label was not known when the window ended. offsets: of a stream whose plan
    counts them.
    """

    rows: int = 0
    dead: int = 0
    late: int = 0
    odd_timestamps: int = 0
    first_odd: str = ""
    label_not_known: int = 0
    offsets: OffsetsRead = NO_OFFSETS


FileKind = Literal[
    "checkpoint", "scores", "steps", "dead_letters", "saved_model", "gate", "evidence"
]


class Link(Message):
    """One trained window, whose rows are those of [start, end).

    base_seen and seen: the model's row sums before and after this window, by source name.
    read: what data executors read for it, by source name.
    learnt: rows of it that each paradigm was trained on, by source name and paradigm; none where
    the model only counts.
    coverage: which rows of each source were asked for, by this window and since the line began.
    files: its files in the store, until enough later windows are trained; saved_model is there
    if a job ended with the window, and gate and evidence if there was a gate.
    resumed_from_step: steps of the window that were sealed when its trainer last resumed it.
    resumed_from_runtime: where these were sealed, if that was on another host.
    model_fingerprint: fingerprint of everything that decides the model's shape and meaning.
    """

    window: str
    start: datetime
    end: datetime
    generation: int
    parent: Parent | None
    step: int
    steps: int
    base_seen: dict[str, RowSums]
    seen: dict[str, RowSums]
    read: dict[str, ReadRows]
    learnt: dict[str, dict[str, int]] = Field(default_factory=dict)
    coverage: dict[str, Coverage] = Field(default_factory=dict)
    files: dict[FileKind, Stored]
    resumed_from_step: int
    resumed_from_runtime: str | None = None
    reread_rows: int
    model_fingerprint: str
    started_at: datetime
    finished_at: datetime

    @property
    def name(self) -> Parent:
        return Parent(window=self.window, generation=self.generation)

    @property
    def has_scores(self) -> bool:
        """Whether its scores can be read: each trained window has steps, kept as long as scores."""
        return "scores" in self.files or "steps" in self.files

    @property
    def variants(self) -> list[Variant]:
        """What was trained, the declared one first; none where the model only counts."""
        counted = next(iter(self.learnt.values()), {})
        return [VARIANTS[name] for name in counted if name in VARIANTS]

    def trained(self, source: str) -> RowSums:
        """What this window trained of one source, from the model's own variables."""
        before = self.base_seen.get(source, RowSums())
        after = self.seen.get(source, RowSums())
        return RowSums(
            rows=after.rows - before.rows,
            sum=_wrap(after.sum - before.sum),
            sum_of_squares=_wrap(after.sum_of_squares - before.sum_of_squares),
        )


class SourceRows(NamedTuple):
    """Rows of one source in one window, counted by three parties.

    planned: what planning learnt from the storage (None: unknown before reading).
    served: rows that data executors handed out. trained: the model's own count. dead: letters.
    planned_offsets: of a stream whose rows are unknown before reading; else None. read_offsets:
    those of them that data executors read, by kind. not_known: rows left out because their label
    was not known in time.
    """

    planned: int | None
    served: int
    trained: int
    dead: int
    planned_offsets: int | None = None
    read_offsets: OffsetsRead = NO_OFFSETS
    not_known: int = 0

    @property
    def agree(self) -> bool:
        """Planned = served = trained + dead + not known, and each planned offset was read."""
        return (
            self.served == self.trained + self.dead + self.not_known
            and self.planned in {None, self.served}
            and self.planned_offsets in {None, self.read_offsets.total}
        )

    def difference(self, window: str, source: str) -> str:
        planned, read = self.planned_offsets, self.read_offsets
        offsets = ""
        if planned not in {None, read.total}:
            offsets = f"; {planned:,} planned offsets, but {read.total:,} were read: {read.text}"
        not_known = f", label not known {self.not_known}" if self.not_known else ""
        return (
            f"rows DISAGREE in window {window}, source {source}: planned {self.planned}, "
            f"served {self.served}, trained {self.trained}, dead {self.dead}{not_known}{offsets}"
        )


def source_rows(plan: SourcePlan, link: Link) -> SourceRows:
    read = link.read.get(plan.source, ReadRows())
    trained = link.trained(plan.source).rows
    offsets: int | None = None  # planned ones, where rows could not be counted
    if plan.rows is None and plan.offsets:
        offsets = sum(end - first for first, end in plan.offsets.values())
    counts = plan.rows, read.rows, trained, read.dead
    return SourceRows(*counts, offsets, read.offsets, read.label_not_known)


class StoredSeal(Message):
    """The newest checkpoint of a window in training that is in the store.

    step: of the window. model_fingerprint: see `Link`. stored: what `copy_seal` gathered.
    """

    window: str
    generation: int
    step: int
    model_fingerprint: str
    stored: Stored


class Published(Message):
    """The pointer to the model that serves.

    integer: of this switch, see `job.publish.serving`. stored, path: its SavedModel in the store.
    """

    window: str
    generation: int
    integer: int
    pinned: bool
    stored: Stored
    path: str
    published_at: datetime


Action = Literal["publish", "serve", "rollback", "unpin"]


class Switch(Message):
    """A change of what serves. who: user and host.

    integer: that of the switch before where only a pin was set or taken away.
    """

    window: str
    generation: int
    integer: int
    action: Action
    who: str
    why: str
    at: datetime

    @property
    def name(self) -> Parent:
        return Parent(window=self.window, generation=self.generation)


def _wrap(value: int) -> int:
    """Reduce to signed 64 bits, as the model's own variables do."""
    return (value + 2**63) % 2**64 - 2**63
