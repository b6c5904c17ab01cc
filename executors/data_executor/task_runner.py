"""Task runners: threads of a data executor that read tasks into the serving buffers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forebay.datatasks.planning.operations import window_hours
from forebay.datatasks.planning.slices import slices_of_rows
from forebay.datatasks.sources.common.cautious.read_units import read_around
from forebay.datatasks.sources.common.contract.base import SourceReader
from forebay.datatasks.sources.common.rows.chunks import place_text
from forebay.datatasks.tasks import Chunk, Position, TaskProgress
from forebay.errors import DataError
from forebay.executors.data_executor.chunk_rows import (
    NULL_LABEL,
    PendingLetters,
    ServedChunk,
    served_chunk,
)
from forebay.executors.job.measures import PhaseSeconds
from forebay.executors.poison.examination import Examiner
from forebay.executors.readers import Readers
from forebay.executors.wire.messages import Grant
from forebay.mixture.queue.queue import PrioritisedQueue, QueueClosedError
from forebay.system.liveness import Activity, progressed, waiting
from forebay.system.output.error_report import ErrorReport

WAIT_SECONDS = 1.0  # for room, repeatedly: it is freed whenever rows are served
RETRY_FIRST_SECONDS, RETRY_LONGEST_SECONDS = 0.2, 5.0
# Threads that wait for work; more are started as needed, and end with their work.
IDLE_MAX = 8
_LOG = logging.getLogger(__name__)


class RunnerThreads:
    """Runs each piece of work at once, in an idle or new thread; no work waits for other work.

    Threads are kept because Arrow's allocator keeps memory by thread. With a new thread for each
    task, the kernel would map and clear pages again, which costs as much as decoding a few columns.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._work: list[Callable[[], None]] = []
        self._idle = 0
        self._closed = False

    def start(self, work: Callable[[], None]) -> None:
        """Begin a piece of work, which reports its own errors.

        Raises:
            RuntimeError: when a thread is needed and cannot be started.
        """
        with self._changed:
            if self._idle > len(self._work):
                self._work.append(work)
                self._changed.notify()
                return
        threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True).start()

    def close(self) -> None:
        """End idle threads now, and the others once their work ends."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            del work  # nothing that it holds outlives it here
            work = self._next()

    def _next(self) -> Callable[[], None] | None:
        """The next piece of work; None when this thread is to end."""
        with self._changed:
            if self._closed or self._idle >= IDLE_MAX:
                return None
            self._idle += 1
            self._changed.wait_for(lambda: self._closed or self._work)
            self._idle -= 1
            return self._work.pop() if self._work else None


@dataclass(frozen=True)
class Outcome:
    """How a runner ended: `failure` is None when the task was read to its end."""

    grant: Grant
    failure: ErrorReport | None = None


@dataclass(eq=False)
class TaskRunner:
    """`decoding` bounds the threads that decode at the same time."""

    grant: Grant
    readers: Readers
    queue: PrioritisedQueue
    letters: PendingLetters
    examiner: Examiner
    decoding: threading.Semaphore
    threads: RunnerThreads
    phases: PhaseSeconds
    ended: Callable[[Outcome], None]

    def __post_init__(self) -> None:
        self._task = self.grant.task
        self._mark = self.examiner.mark(self._task)
        self._suspected: Position | None = None
        self._index = self.readers.names.index(self._task.source)
        self._spec = self.readers.spec(self._task.source)
        self._hour = self._task.hour
        self._stopped = threading.Event()
        self._activity = Activity(f"reading {self._task.task_id}")
        self._over = threading.Event()

    def announce(self) -> None:
        self.queue.open_task(self._index, self._task.task_id, self._task.hour)

    def start(self) -> None:
        self.threads.start(self._run)

    @property
    def is_alive(self) -> bool:
        return not self._over.is_set()

    def stop(self) -> None:
        """End soon, even in a pause before a retry. A read that hangs no longer matters."""
        self._activity.is_over = True
        self._stopped.set()

    def _run(self) -> None:
        try:
            with self._activity:
                self._read_on()
        finally:
            self._over.set()

    def _read_on(self) -> None:
        try:
            self._pause()
            with self.readers.source(self._task.source) as source:
                self._read(source)
        except QueueClosedError:
            return  # the lease is lost: its new holder continues
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver decides about it
            _LOG.warning("task %s cannot be read", self._task.task_id, exc_info=error)
            self.ended(Outcome(self.grant, ErrorReport.of(error)))
        else:
            self.ended(Outcome(self.grant))
        finally:
            self._mark.remove()

    def _pause(self) -> None:
        if self.grant.failures:
            pause = RETRY_FIRST_SECONDS * 2 ** (self.grant.failures - 1)
            with waiting():
                if self._stopped.wait(min(pause, RETRY_LONGEST_SECONDS)):
                    raise QueueClosedError

    def _read(self, source: SourceReader) -> None:
        progress = self.grant.progress
        chunks = self._chunks(source)
        done = progress or TaskProgress(position=Position(0, 0))
        try:
            while (after := self._serve_next(chunks, source, done)) is not None:
                done = after
        finally:
            if isinstance(chunks, Generator):
                chunks.close()
        self._cleared()
        end = done.model_copy(update={"ended": True})
        self.queue.end_task(self._index, self._task.task_id, end)
        while not self.queue.settle(self._index, self._task.task_id, WAIT_SECONDS):
            progressed()  # it waits for room; the queue raises when its epoch ends

    def _chunks(self, source: SourceReader) -> Iterator[Chunk]:
        chunk_rows = self.queue.chunk_rows(self._index)
        poisons = self.examiner.poisons(self.grant, self._spec, chunk_rows)
        suspicion = self.grant.suspicion
        self._suspected = suspicion.place.position if suspicion and not suspicion.is_due else None
        columns = self.readers.columns(self._task.source)
        return read_around(source, self._task, self.grant.progress, columns, chunk_rows, poisons)

    def _cleared(self) -> None:
        if self._suspected is not None:
            self.examiner.cleared(self.grant)
            self._suspected = None

    def _serve_next(
        self, chunks: Iterator[Chunk], source: SourceReader, done: TaskProgress
    ) -> TaskProgress | None:
        """Serve the next chunk once there is room for it; no reference to it is kept here."""
        with self.phases.phase("blocked"):
            while not self.queue.reserve(self._index, self._task.task_id, WAIT_SECONDS):
                progressed()  # it waits for room; the queue raises when its epoch ends
        found = self._decode(chunks, source, done)
        if found is None:
            return None
        if self._suspected is not None and done.position > self._suspected:
            # The process that died had begun its chunk there; this chunk begins after it.
            self._cleared()
        self._set_aside(found)
        chunk = found.buffered(self._hour)
        if len(found.kept):
            self._hour = int(chunk.hours[-1])
        self.queue.put(self._index, self._task.task_id, chunk)
        return found.after

    def _decode(
        self, chunks: Iterator[Chunk], source: SourceReader, done: TaskProgress
    ) -> ServedChunk | None:
        with waiting():  # for other readers, which are watched themselves
            self.decoding.acquire()
        try:
            with self._mark.decoding(done.position):
                with self.phases.phase("decode"):  # what storage takes for it too
                    chunk = next(chunks, None)
                if chunk is None:
                    return None
                chunk = replace(chunk, hours=self._hours(chunk))
                with self.phases.phase("encode"):
                    encoded = self.readers.encode(self._task, chunk)
                    return served_chunk(
                        chunk, encoded, done, lambda at: source.location(self._task, at)
                    )
        except MemoryError as error:
            place = place_text(source.location(self._task, done.position))
            raise DataError(
                f"source {self._spec.name!r}, rows from {place} on: not enough memory to decode "
                "them (write smaller batches of rows, or give the role more memory)"
            ) from error
        finally:
            self.decoding.release()

    def _hours(self, chunk: Chunk) -> npt.NDArray[np.int32]:
        if self._task.last is not None:
            return slices_of_rows(self._task, chunk)
        return window_hours(chunk.hours, self._task.hour_base)

    def _set_aside(self, found: ServedChunk) -> None:
        for row in found.dead:
            key = "label_null" if row.reason == NULL_LABEL else "bad_rows"
            if getattr(self._spec, key) == "fail":
                raise DataError(
                    f"source {self._spec.name!r}, {place_text(row.location)}: {row.reason} "
                    f"(`{key}: dead_letter` sets such rows aside)"
                )
        self.letters.add(self._task, found.dead, found.before.dead_rows)
