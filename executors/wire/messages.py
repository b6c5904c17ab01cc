"""Messages between driver, data executors and trainer, as JSON on the wire.

docs/internals/protocol.md has the rules.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeInt

from forebay.config.specs.datasets import Feed
from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.tasks import DataTask, TaskProgress
from forebay.executors.job.suspicions import Suspicion
from forebay.system.message import Message
from forebay.system.output.error_report import ErrorReport

Progress = dict[str, TaskProgress]
SourceIndex = Annotated[int, Field(ge=0, lt=1 << 31)]


class Done(Message):
    """The answer to a call that has nothing to return."""


# Data executor -> driver ---------------------------------------------------------------------


class Registration(Message):
    """A data executor announces itself. The process with the highest attempt owns the index."""

    executor: int
    instance: str
    attempt: int
    address: str
    pid: int


class Registered(Message):
    """The driver's incarnation, for the log."""

    incarnation: int


class LeaseCall(Message):
    """Waits for work. A repeated `sequence` gets the same answer.

    `epoch`, `last` and `horizon` are what the executor knows: a difference is answered at once.
    """

    executor: int
    instance: str
    epoch: int
    sequence: int
    last: bool
    horizon: int | None = None
    wait_seconds: float = 1.0


class Grant(Message):
    """A lease: the task, which grant of it this is, and where to continue (None: its start).

    poisons: what must not be read of it. suspicion: what an earlier reader may have died of.
    """

    task: DataTask
    attempt: int
    failures: int
    progress: TaskProgress | None
    poisons: list[Poison] = Field(default_factory=list)
    suspicion: Suspicion | None = None


class LeaseReply(Message):
    """Grants under `epoch` (0: no window is open). `last`: no task is waiting for anyone now.

    pending: by source, the hour of its earliest task that is not leased yet; only where there is
    one executor, which will read it. readers: by source, the most tasks that one executor reads at
    a time. horizon: of a window that grows, up to which slice rows are served; None of any other.
    """

    epoch: int
    window: str
    generation: int
    grants: list[Grant]
    last: bool
    pending: dict[str, int] = Field(default_factory=dict)
    readers: dict[str, int] = Field(default_factory=dict)
    horizon: int | None = None


class ExecutorBeat(Message):
    """Sent every 0.2 s, and whenever a task has ended.

    done: tasks read to their end. hours: the hour that each task still being read has reached.
    """

    executor: int
    instance: str
    epoch: int
    done: list[str]
    hours: dict[str, int] = Field(default_factory=dict)


class TaskFailure(Message):
    """A lease's task could not be read any further. Refused if the lease was lost meanwhile."""

    executor: int
    instance: str
    epoch: int
    task_id: str
    attempt: int
    cause: ErrorReport


class Examined(Message):
    """News of a suspected task: a poison that explains an end, or None: it was read past there."""

    executor: int
    instance: str
    task: DataTask
    suspicion: Suspicion
    poison: Poison | None = None


# Trainer -> driver ---------------------------------------------------------------------------


class OpenWindow(Message):
    """Serve this window from `used`. `trainer`: the caller's attempt, which fences lower ones."""

    trainer: int
    window: str
    generation: int
    step: int
    sealed: Progress
    used: Progress


class Opened(Message):
    """The session that later calls name, and the window's task count; None while it grows."""

    session: int
    tasks: int | None


class TrainerBeat(Message):
    """Positions used since the last beat, fences answered, epochs whose stream broke.

    A `fenced` epoch comes with the positions up to which its rows were handed to the step; no more
    rows of that epoch will be. Waits up to `wait_seconds` while the driver's orders are still those
    of `version`.
    """

    trainer: int
    session: int
    sequence: int
    version: int
    used: Progress = Field(default_factory=dict)
    fenced: dict[int, Progress] = Field(default_factory=dict)
    broken: list[int] = Field(default_factory=list)
    wait_seconds: float = 0.2


class Serving(Message):
    """A data executor to take rows from, under one epoch."""

    executor: int
    epoch: int
    address: str


class Orders(Message):
    """What the driver wants from the trainer: whom to read from, whom to fence, why to stop.

    tasks: of the window; None while it grows.
    """

    version: int
    serving: list[Serving]
    fence: list[int]
    tasks: int | None
    error: ErrorReport | None = None


class SealCall(Message):
    """A checkpoint with these positions is on disk."""

    trainer: int
    session: int
    step: int
    progress: Progress


# Anyone -> driver ----------------------------------------------------------------------------


class StatusCall(Message):
    """Asks how far the window is."""


class StatusReply(Message):
    """Facts for people: never the base of a decision.

    tasks: by state. rows_used: by source. executors: indexes of those that are registered.
    """

    incarnation: int
    tasks: dict[str, int]
    rows_used: dict[str, int]
    executors: list[int]
    sealed_step: int


# Data executor -> trainer (app_metadata of a frame) ------------------------------------------


class StreamCall(Message):
    """Opens the stream of one epoch; each epoch is served once, to one caller."""

    epoch: int


class CreditNote(Message):
    """Room for this many more minibatches; frames without positions need none."""

    credits: int


class Letter(Message):
    """Dead rows [first, end) of a task, counted from its start, as a line of JSON.

    line: empty for rows that are only counted, which may be parted.
    """

    task_id: str
    first: int
    end: int
    line: str

    @property
    def source(self) -> str:
        return self.task_id.rpartition("/")[0]

    @property
    def rows(self) -> int:
        return self.end - self.first


class FrameHead(Message):
    """What a frame's rows are. `segments`: (source index, rows) in the order of the rows.

    Once this frame and the earlier ones of its feed are used, every task in `progress` is at that
    position, and the letters of its dead rows are in this frame or an earlier one. A frame may have
    nothing but letters.
    """

    executor: str
    epoch: int
    sequence: int
    feed: Feed
    hour: int
    segments: list[tuple[SourceIndex, NonNegativeInt]]
    progress: Progress
    letters: list[Letter] = Field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.segments)
