"""What is known about a trained window: its place in the model chain, and what its model saw."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from forebay.config.specs.models import VARIANTS, Variant
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
    def model(self) -> ServedModel:
        return ServedModel(window=self.window, generation=self.generation)

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


class StoredSeal(Message):
    """The newest checkpoint of a window in training that is in the store.

    step: of the window. model_fingerprint: see `Link`. stored: what `copy_seal` gathered.
    """

    window: str
    generation: int
    step: int
    model_fingerprint: str
    stored: Stored


class ServedModel(Parent):
    """A model that serves, or did. step: of its window, which had not ended; 0: of its link."""

    step: int = 0

    @property
    def model(self) -> ServedModel:
        """Its name alone."""
        return ServedModel(window=self.window, generation=self.generation, step=self.step)

    @property
    def words(self) -> str:
        at = f", step {self.step:,}" if self.step else ""
        return f"generation {self.generation} of window {self.window}{at}"


class InnerExport(ServedModel):
    """A model that was exported before its window had ended.

    newest_at: when the newest row of a stream that it has learnt was published.
    """

    start: datetime
    end: datetime
    newest_at: datetime | None
    exported_at: datetime
    stored: Stored


class Serving(ServedModel):
    """The model that serves.

    integer: of this switch, see `job.publish.serving`. path: its SavedModel in the store.
    """

    integer: int
    pinned: bool
    path: str
    published_at: datetime

    def __str__(self) -> str:
        at = f"{self.published_at:%Y-%m-%d %H:%M} UTC"
        step = f", step {self.step:,}" if self.step else ""
        return f"window {self.window} (generation {self.generation}{step}), since {at}"


class Published(Serving):
    """The pointer to it."""

    stored: Stored


Action = Literal["publish", "serve", "rollback", "unpin", "withdraw"]


class Switch(ServedModel):
    """A change of what serves. who: user and host.

    integer: that of the switch before where only a pin was set or taken away.
    """

    integer: int
    action: Action
    who: str
    why: str
    at: datetime


class GateDecision(Message):
    """Which variant of a window serves, and why. It is stored beside the model that serves.

    words: for people. windows: those whose event scores decided; none if too little is judged.
    rows: how many judged rows they have. benched: variants that are clearly worse than this one.
    """

    variant: str
    declared: str
    words: str
    windows: list[str] = Field(default_factory=list)
    rows: int = 0
    benched: list[str] = Field(default_factory=list)


def _wrap(value: int) -> int:
    """Reduce to signed 64 bits, as the model's own variables do."""
    return (value + 2**63) % 2**64 - 2**63
