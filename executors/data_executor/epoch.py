"""One epoch of a data executor: its queue, its runners, the frames that it produces.

An epoch is served once, to one caller; all of this is thrown away with the epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

from forebay.executors.data_executor.runner_threads import RunnerThreads
from forebay.executors.data_executor.task_runner import Outcome, TaskRunner
from forebay.executors.poison.examination import Examiner
from forebay.executors.poison.readers import Readers
from forebay.executors.window_files.dead_letters import DeadLetterWriter
from forebay.executors.wire.messages import FrameHead, Grant, LeaseReply, Progress
from forebay.mixture.queue.queue import FrameRows, PrioritisedQueue


class ServingEpoch:
    def __init__(
        self,
        number: int,
        executor: int,
        queue: PrioritisedQueue,
        readers: Readers,
        letters: DeadLetterWriter,
        examiner: Examiner,
        decoding: threading.Semaphore,
        threads: RunnerThreads,
        ended: Callable[[ServingEpoch, Outcome], None],
    ) -> None:
        self.number = number
        self.is_claimed = False
        self._executor = f"data-{executor}"
        self._queue = queue
        self._readers = readers
        self._letters = letters
        self._examiner = examiner
        self._decoding = decoding
        self._threads = threads
        self._ended = ended
        self._runners: list[TaskRunner] = []
        self._sequence = 0

    def start(self, reply: LeaseReply) -> None:
        """Read what was leased. All of it is announced before the first row can be served."""
        runners = [self._runner(grant) for grant in reply.grants]
        for runner in runners:
            runner.announce()
        self._queue.set_pending(reply.pending, is_last=reply.last)
        for runner in runners:
            runner.start()
        self._runners = [runner for runner in self._runners if runner.is_alive] + runners

    def next(self, timeout_seconds: float) -> tuple[FrameHead, FrameRows] | None:
        """The next minibatch with its head, for the server's thread."""
        rows = self._queue.pop(timeout_seconds)
        if rows is None:
            return None
        head = FrameHead(
            executor=self._executor,
            epoch=self.number,
            sequence=self._sequence,
            feed=rows.feed,
            hour=rows.hour,
            segments=rows.segments,
            progress=cast("Progress", rows.tokens),
        )
        self._sequence += 1
        return head, rows

    def reading(self) -> dict[str, int]:
        """The hour that each task still being read has reached."""
        return {str(task): hour for task, hour in self._queue.reading().items()}

    def close(self) -> None:
        """Throw everything away; runners end as soon as they notice."""
        self._queue.close()
        for runner in self._runners:
            runner.stop()

    def _runner(self, grant: Grant) -> TaskRunner:
        return TaskRunner(
            grant,
            self._readers,
            self._queue,
            self._letters,
            self._examiner,
            self._decoding,
            self._threads,
            lambda outcome: self._ended(self, outcome),
        )
