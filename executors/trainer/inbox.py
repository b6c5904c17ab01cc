"""Frames on the trainer's side: queued, taken by a step, used; and what a fence does to them.

Pure state, guarded by its owner's lock. A frame that was handed out counts as taken: this process
will train on it or die, and after a death the sealed positions count, so a fence may be answered
while a step runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forebay.config.specs.datasets import Feed
from forebay.datatasks.task_runs import Positions
from forebay.datatasks.tasks import TaskProgress, further
from forebay.mixture.features.served import to_minibatch
from forebay.mixture.minibatch import Minibatch

if TYPE_CHECKING:
    import pyarrow as pa

    from forebay.executors.wire.messages import FrameHead, Letter
    from forebay.mixture.features.layout import FeatureLayout


@dataclass(frozen=True, eq=False)
class Frame:
    """One minibatch and how far its tasks are once it is used.

    minibatch: None where only positions moved. rows: rows of the minibatch. hour: of its first row,
    in hours from the window's first data. executor, epoch: who sent it, under which lease.
    batch: the rows as they were served; None as above. letters: once it was taken from the inbox,
    those of the dead rows that `progress` counts.
    """

    minibatch: Minibatch | None
    progress: dict[str, TaskProgress]
    executor: str
    epoch: int
    rows: int
    hour: int
    feed: Feed = "batch"
    batch: pa.RecordBatch | None = None
    letters: Sequence[Letter] = ()

    @classmethod
    def of(cls, head: FrameHead, batch: pa.RecordBatch | None, layout: FeatureLayout) -> Frame:
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
            batch=batch if minibatch is not None else None,
            letters=head.letters,
        )


@dataclass
class EpochQueue:
    """Frames of one epoch in the order in which they were sent, whenever they arrived.

    letters: by task, of dead rows that no frame has counted yet.
    """

    frames: deque[tuple[int, Frame]] = field(default_factory=deque)
    taken: dict[str, TaskProgress] = field(default_factory=dict)
    letters: defaultdict[str, deque[Letter]] = field(default_factory=lambda: defaultdict(deque))

    def counted(self, progress: Mapping[str, TaskProgress]) -> Iterator[Letter]:
        """The letters of dead rows that these positions count, which leave here."""
        for task_id, at in progress.items():
            letters = self.letters.get(task_id)
            while letters and letters[0].first < at.dead_rows:
                letter = letters.popleft()
                if letter.end > at.dead_rows:
                    letters.appendleft(letter.model_copy(update={"first": at.dead_rows}))
                    letter = letter.model_copy(update={"end": at.dead_rows})
                yield letter


def source_of(task_id: str) -> str:
    """The source's name in `source/number`."""
    return task_id.rpartition("/")[0]


class Inbox:
    """Frames and positions of one window in one trainer process."""

    def __init__(self, sealed: Mapping[str, TaskProgress], *, grows: bool = False) -> None:
        """grows: frames of all epochs are taken as they came; positions at their end are folded."""
        self._grows = grows
        self._used = Positions(sealed, folds=grows)
        self._taken = {name: at for name, at in sealed.items() if not at.ended}
        self.dead_rows: Counter[str] = Counter()
        self.dropped_rows = 0
        self._epochs: dict[int, EpochQueue] = {}
        self._fenced: dict[int, dict[str, TaskProgress]] = {}
        self._news: dict[str, TaskProgress] = {}
        self._arrivals = 0
        for task_id, progress in sealed.items():
            self.dead_rows[source_of(task_id)] += progress.dead_rows

    def open(self, epoch: int) -> None:
        """Accept frames of an epoch, once."""
        if epoch not in self._fenced:
            self._epochs.setdefault(epoch, EpochQueue())

    def is_open(self, epoch: int) -> bool:
        return epoch in self._epochs

    def put(self, frame: Frame) -> bool:
        """Queue a frame; False, and the frame is thrown away, when its epoch is not open."""
        queue = self._epochs.get(frame.epoch)
        if queue is None:
            self.dropped_rows += frame.rows
            return False
        for letter in frame.letters:
            queue.letters[letter.task_id].append(letter)
        if frame.letters and not frame.progress:
            return True
        self._arrivals += 1
        if queue.letters:
            frame = replace(frame, letters=tuple(queue.counted(frame.progress)))
        queue.frames.append((self._arrivals, frame))
        return True

    def take(self) -> Frame | None:
        """Of several epochs, the one whose next frame has the earliest hour, or arrived first."""
        waiting = [queue for queue in self._epochs.values() if queue.frames]
        if not waiting:
            return None
        queue = min(waiting, key=self._order)
        _, frame = queue.frames.popleft()
        queue.taken.update(frame.progress)
        self._taken.update(frame.progress)
        return frame

    def _order(self, queue: EpochQueue) -> tuple[int, int]:
        arrival, frame = queue.frames[0]
        return 0 if self._grows else frame.hour, arrival

    @property
    def used(self) -> dict[str, TaskProgress]:
        """Positions of tasks, or of folded ones, up to which rows were used."""
        return self._used.entries

    @property
    def ended(self) -> int:
        """How many tasks are used to their ends."""
        return self._used.ended

    def use(self, frame: Frame) -> dict[str, TaskProgress]:
        """A step used the frame. Returns where those of its tasks that were begun had been."""
        begun = {task: self.used[task] for task in frame.progress if task in self.used}
        for task_id, progress in frame.progress.items():
            before = begun.get(task_id)
            after = further(before, progress)
            self._used.set(task_id, after)
            self._news[task_id] = after
            if after.ended and self._grows:
                self._forget(task_id, frame.epoch)
            self.dead_rows[source_of(task_id)] += after.dead_rows - (
                before.dead_rows if before else 0
            )
        return begun

    def _forget(self, task_id: str, epoch: int) -> None:
        """Its position is in the news, which the driver gets before the answer to any fence."""
        self._taken.pop(task_id, None)
        if (queue := self._epochs.get(epoch)) is not None:
            queue.taken.pop(task_id, None)
            queue.letters.pop(task_id, None)

    def news(self) -> dict[str, TaskProgress]:
        """Positions that were used since the last call."""
        news, self._news = self._news, {}
        return news

    def fence(self, epoch: int) -> dict[str, TaskProgress]:
        """Refuse the epoch; returns, also later, how far its rows were, or will be, trained on."""
        queue = self._epochs.pop(epoch, None)
        if queue is not None:
            self.dropped_rows += sum(frame.rows for _, frame in queue.frames)
            self._fenced[epoch] = queue.taken
        return self._fenced.get(epoch, {})

    def fence_all(self) -> dict[str, TaskProgress]:
        """Refuse every epoch; returns how far each task was, or will be, trained on."""
        for epoch in list(self._epochs):
            self.fence(epoch)
        return {**self.used, **self._taken}
