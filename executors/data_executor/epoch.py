"""One epoch of a data executor: its queue, its runners, the frames that it produces.

An epoch is served once, to one caller; all of this is thrown away with the epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from forebay.executors.data_executor.chunk_rows import PendingLetters
from forebay.executors.data_executor.task_runner import Outcome, RunnerThreads, TaskRunner
from forebay.executors.job.measures import PhaseSeconds
from forebay.executors.poison.examination import Examiner
from forebay.executors.readers import Readers
from forebay.executors.roles.table import DATA
from forebay.executors.wire.messages import FrameHead, Grant, LeaseReply, Progress
from forebay.mixture.queue.queue import FrameRows, PrioritisedQueue

_NO_ROWS = FrameRows("batch", 0, [], [], {})


@dataclass(eq=False)
class ServingEpoch:
    number: int
    executor: int
    queue: PrioritisedQueue
    readers: Readers
    letters: PendingLetters
    examiner: Examiner
    decoding: threading.Semaphore
    threads: RunnerThreads
    phases: PhaseSeconds
    ended: Callable[[ServingEpoch, Outcome], None]
    is_claimed: bool = False
    horizon: int | None = None
    _runners: list[TaskRunner] = field(default_factory=list)
    _sequence: int = 0

    def start(self, reply: LeaseReply) -> None:
        """Read what was leased. All of it is announced before the first row can be served."""
        runners = [self._runner(grant) for grant in reply.grants]
        for runner in runners:
            runner.announce()
        self.horizon = reply.horizon
        self.queue.set_pending(reply.pending, is_last=reply.last, horizon=reply.horizon)
        for runner in runners:
            runner.start()
        self._runners = [runner for runner in self._runners if runner.is_alive] + runners

    def next(self, timeout_seconds: float) -> tuple[FrameHead, FrameRows] | None:
        """The next minibatch with its head, for the server's thread; or only dead letters."""
        with self.phases.phase("starved"):  # the trainer has room, and no minibatch is ready
            rows = self.queue.pop(timeout_seconds) or _NO_ROWS
        letters = self.letters.take()
        if rows is _NO_ROWS and not letters:
            return None
        head = FrameHead(
            executor=f"{DATA.name}-{self.executor}",
            epoch=self.number,
            sequence=self._sequence,
            feed=rows.feed,
            hour=rows.hour,
            segments=rows.segments,
            progress=cast("Progress", rows.tokens),
            letters=letters,
        )
        self._sequence += 1
        return head, rows

    def reading(self) -> dict[str, int]:
        """The hour that each task still being read has reached."""
        return {str(task): hour for task, hour in self.queue.reading().items()}

    def close(self) -> None:
        """Throw everything away; runners end as soon as they notice."""
        self.queue.close()
        self.letters.close()
        for runner in self._runners:
            runner.stop()

    def _runner(self, grant: Grant) -> TaskRunner:
        return TaskRunner(
            grant,
            self.readers,
            self.queue,
            self.letters,
            self.examiner,
            self.decoding,
            self.threads,
            self.phases,
            lambda outcome: self.ended(self, outcome),
        )
