"""Frames on the trainer's side: queued, in the step's hand, used; and what a fence does to them.

Pure state, guarded by the lock of its owner. A frame that was handed out counts as taken: this
process will learn it or die, and then the sealed positions count, so a fence may be answered
while a step runs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forebay.config.datasets import Feed
from forebay.datatasks.tasks import TaskProgress, further
from forebay.mixture.features.served import to_minibatch
from forebay.mixture.minibatch import Minibatch

if TYPE_CHECKING:
    import pyarrow as pa

    from forebay.executors.wire.messages import FrameHead
    from forebay.mixture.features.layout import FeatureLayout


@dataclass(frozen=True, eq=False)
class Frame:
    """One minibatch and how far its tasks are once it is used.

    minibatch: None where only positions moved. rows: rows of the minibatch. hour: hours from the
    window's first data, of its first row. executor and epoch say who sent it, under which lease.
    """

    minibatch: Minibatch | None
    progress: dict[str, TaskProgress]
    executor: str
    epoch: int
    rows: int
    hour: int
    feed: Feed = "batch"

    @classmethod
    def of(cls, head: FrameHead, batch: pa.RecordBatch | None, layout: FeatureLayout) -> Frame:
        """What a data executor sent. batch: its rows; None where only positions moved."""
        minibatch = None
        if batch is not None and head.rows:
            minibatch = to_minibatch(batch, head.segments, head.feed, layout)
        return cls(
            minibatch=minibatch,
            progress=head.progress,
            executor=head.executor,
            epoch=head.epoch,
            rows=head.rows,
            hour=head.hour,
            feed=head.feed,
        )


@dataclass
class EpochQueues:
    """Frames of one epoch: one queue for each feed, and how far its rows were handed out."""

    queues: dict[Feed, deque[tuple[int, Frame]]] = field(default_factory=dict)
    taken: dict[str, TaskProgress] = field(default_factory=dict)


def source_of(task_id: str) -> str:
    """The source's name in `source/number`."""
    return task_id.rpartition("/")[0]


class Inbox:
    """Frames and positions of one window in one trainer process."""

    def __init__(self, sealed: Mapping[str, TaskProgress]) -> None:
        """Start from what the newest checkpoint holds."""
        self.used: dict[str, TaskProgress] = dict(sealed)
        self._taken: dict[str, TaskProgress] = dict(sealed)
        self.ended = sum(progress.ended for progress in sealed.values())
        self.dead_rows: Counter[str] = Counter()
        self.dropped_rows = 0
        self._epochs: dict[int, EpochQueues] = {}
        self._fenced: dict[int, dict[str, TaskProgress]] = {}
        self._news: dict[str, TaskProgress] = {}
        self._arrivals = 0
        for task_id, progress in sealed.items():
            self.dead_rows[source_of(task_id)] += progress.dead_rows

    def open(self, epoch: int) -> None:
        """Accept frames of an epoch, once."""
        if epoch not in self._fenced:
            self._epochs.setdefault(epoch, EpochQueues())

    def is_open(self, epoch: int) -> bool:
        """Whether frames of the epoch are accepted."""
        return epoch in self._epochs

    def put(self, frame: Frame) -> bool:
        """Queue a frame; False, and the frame is thrown away, when its epoch is not open."""
        queues = self._epochs.get(frame.epoch)
        if queues is None:
            self.dropped_rows += frame.rows
            return False
        self._arrivals += 1
        queues.queues.setdefault(frame.feed, deque()).append((self._arrivals, frame))
        return True

    def take(self) -> Frame | None:
        """Hand out the frame of the earliest hour, of several the one that came first."""
        heads = [
            (queue[0][1].hour, queue[0][0], queues, queue)
            for queues in self._epochs.values()
            for queue in queues.queues.values()
            if queue
        ]
        if not heads:
            return None
        _, _, queues, queue = min(heads, key=lambda head: head[:2])
        _, frame = queue.popleft()
        queues.taken.update(frame.progress)
        self._taken.update(frame.progress)
        return frame

    def use(self, frame: Frame) -> None:
        """A step learnt the frame."""
        for task_id, progress in frame.progress.items():
            before = self.used.get(task_id)
            after = further(before, progress)
            self.used[task_id] = self._news[task_id] = after
            self.ended += after.ended - (before.ended if before else False)
            self.dead_rows[source_of(task_id)] += after.dead_rows - (
                before.dead_rows if before else 0
            )

    def news(self) -> dict[str, TaskProgress]:
        """Positions that were used since the last call."""
        news, self._news = self._news, {}
        return news

    def fence(self, epoch: int) -> dict[str, TaskProgress]:
        """Refuse the epoch from now on; how far its rows were, or will be, learnt.

        Called again, it answers the same again.
        """
        queues = self._epochs.pop(epoch, None)
        if queues is not None:
            self.dropped_rows += sum(frame.rows for q in queues.queues.values() for _, frame in q)
            self._fenced[epoch] = queues.taken
        return self._fenced.get(epoch, {})

    def fence_all(self) -> dict[str, TaskProgress]:
        """Refuse every epoch; how far each task was, or will be, learnt."""
        for epoch in list(self._epochs):
            self.fence(epoch)
        return dict(self._taken)
