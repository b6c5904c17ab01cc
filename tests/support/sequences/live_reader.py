"""Rows for a trainer without processes: a data executor's own parts, in the trainer's process.

The plan comes from the ledger and rows from the storage. What is left out is the driver, which
leases tasks, and the wire. Tasks are read one after the other, so that a life that dies at a point
dies there again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.tasks import TaskProgress
from forebay.errors import error_of
from forebay.executors.data_executor.chunk_rows import PendingLetters
from forebay.executors.data_executor.epoch import ServingEpoch
from forebay.executors.data_executor.executor import limits_of, queue_sources_of
from forebay.executors.data_executor.task_runner import Outcome, RunnerThreads
from forebay.executors.job.measures import PhaseSeconds
from forebay.executors.link.protocol import RoleLink
from forebay.executors.poison.examination import Examiner
from forebay.executors.readers import Readers
from forebay.executors.trainer.inbox import Frame, Inbox
from forebay.executors.trainer.remote_reader import _Session
from forebay.executors.wire.messages import Grant, LeaseReply
from forebay.home.paths import Home
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.queue.queue import PrioritisedQueue

EPOCH = 1
READ_SECONDS = 30.0


class LiveReader:
    """Stands where the trainer's reader does."""

    def __init__(
        self, link: RoleLink, layout: FeatureLayout, source_names: Sequence[str], attempt: int
    ) -> None:
        del attempt
        self._link = link
        self._request = link.request("the trainer")
        self._pipeline, self._specs = self._request.pipeline_spec(), self._request.source_specs()
        self._layout = layout
        self._names = source_names
        self._home = Home(Path(self._request.home))
        self._readers = Readers(self._request)
        self._threads = RunnerThreads("reader")
        self._session = self._begun("", Inbox({}), 0)
        self._epoch: ServingEpoch | None = None
        self._read = threading.Event()
        self._outcome: Outcome | None = None

    def begin(
        self, window: str, generation: int, sealed: Mapping[str, TaskProgress], step: int
    ) -> None:
        del step
        self._end()
        ledger = Ledger(self._home, self._pipeline.name)
        plan, table = ledger.plan(window, generation), ledger.tasks(window, generation)
        self._session = self._begun(window, Inbox(sealed), len(table))
        self._session.inbox.open(EPOCH)
        letter_bytes = {
            use.name: self._specs[use.source].dead_letter_bytes_max for use in self._pipeline.uses
        }
        self._epoch = ServingEpoch(
            EPOCH,
            0,
            PrioritisedQueue(
                queue_sources_of(self._pipeline, self._specs),
                limits_of(self._pipeline, 1),
                {},  # one task is read at a time
            ),
            self._readers,
            PendingLetters(letter_bytes),
            Examiner(self._link, lambda *_: None, READ_SECONDS),
            threading.Semaphore(1),
            self._threads,
            PhaseSeconds(),
            self._ended,
        )
        for row in range(len(table)):
            task = ledger.data_task(table, row, plan)
            progress = sealed.get(task.task_id)
            if progress is None or not progress.ended:
                self._serve(self._epoch, Grant(task=task, attempt=1, failures=0, progress=progress))
        self._epoch.start(_reply(last=True))

    def next(self, timeout_seconds: float) -> Frame | None:
        assert self._epoch is not None
        if not self.finished() and (found := self._epoch.next(timeout_seconds)) is not None:
            head, rows = found
            batch = pa.concat_batches(rows.batches) if rows.batches else None
            self._session.inbox.put(Frame.of(head, batch, self._layout))
        self._session.check_dead_rows()
        return self._session.inbox.take()

    @property
    def orders(self) -> tuple[int, int]:
        """Nobody comes or goes here."""
        return 0, 0

    def used(self, frame: Frame) -> dict[str, TaskProgress]:
        return self._session.inbox.use(frame)

    def finished(self) -> bool:
        return self._session.inbox.ended == self._session.tasks

    def progress(self) -> dict[str, TaskProgress]:
        return dict(self._session.inbox.used)

    def sealed(self, step: int, progress: Mapping[str, TaskProgress]) -> None:
        """No storage waits for positions here."""

    def dropped_rows(self) -> int:
        return self._session.inbox.dropped_rows

    def close(self) -> None:
        self._end()
        self._readers.close()
        self._threads.close()

    def _begun(self, window: str, inbox: Inbox, tasks: int) -> _Session:
        most = {
            use.name: self._specs[use.source].dead_letter_rows_max for use in self._pipeline.uses
        }
        limits = {name: each for name, each in most.items() if each is not None}
        return _Session(self._pipeline.name, window, 1, 0, {}, inbox, 1, tasks, limits)

    def _serve(self, epoch: ServingEpoch, grant: Grant) -> None:
        """Read a task to its end: what a window of these tests holds fits into the buffers."""
        self._read.clear()
        epoch.start(_reply(grant))
        assert self._read.wait(READ_SECONDS), f"{grant.task.task_id} is not read"
        assert self._outcome is not None
        failure = self._outcome.failure
        if failure is not None:  # a driver would try again: nothing gets better here
            raise error_of(failure.exit_code, failure.message, failure.error)

    def _ended(self, epoch: ServingEpoch, outcome: Outcome) -> None:
        del epoch
        self._outcome = outcome
        self._read.set()

    def _end(self) -> None:
        if self._epoch is not None:
            self._epoch.close()
            self._epoch = None


def _reply(*grants: Grant, last: bool = False) -> LeaseReply:
    return LeaseReply(epoch=EPOCH, window="", generation=0, grants=list(grants), last=last)
