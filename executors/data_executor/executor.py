"""A data executor: leases tasks, reads them into buffers, serves minibatches.

Run as `python -m forebay.executors.data_executor --job DIR --index N --attempt N`. It owns nothing:
whatever it holds under an epoch can be thrown away at any moment (docs/internals/protocol.md).
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress

from forebay.config.specs.feeds import hours_together, stream_feed
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.tasks import DataTask
from forebay.errors import FencedError, ForebayError, InfrastructureError, NotKnownError
from forebay.executors.arrow_start import start_arrow
from forebay.executors.data_executor.chunk_rows import PendingLetters
from forebay.executors.data_executor.epoch import ServingEpoch
from forebay.executors.data_executor.flight_server import FlightFrameServer, NextFrame
from forebay.executors.data_executor.task_runner import Outcome, RunnerThreads
from forebay.executors.job.measures import PhaseSeconds
from forebay.executors.job.suspicions import Suspicion
from forebay.executors.link.protocol import RoleLink
from forebay.executors.poison.examination import Examiner
from forebay.executors.readers import Readers
from forebay.executors.role import Given, run_role
from forebay.executors.roles.table import DATA
from forebay.executors.wire.messages import (
    Done,
    Examined,
    ExecutorBeat,
    Grant,
    LeaseCall,
    LeaseReply,
    Registered,
    Registration,
    TaskFailure,
)
from forebay.executors.wire.rpc import DriverClient, patience_seconds
from forebay.mixture.features.served import served_schema
from forebay.mixture.kernels.library import start_kernels
from forebay.mixture.queue.queue import Limits, PrioritisedQueue, QueueSources
from forebay.system.liveness import progressed
from forebay.system.output.error_report import ErrorReport

_CHUNKS = 2  # the bytes always have room for this many
_NUMBER_BYTES = 8


def queue_sources_of(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> QueueSources:
    """Uses of sources in index order; each belongs to its stream."""
    names, streams = zip(*pipeline.dataset.streams.items(), strict=True)
    groups = [names.index(use.stream) for use in pipeline.uses]
    return QueueSources(
        names=pipeline.use_names,
        feeds=[stream_feed(names[group], streams[group], sources) for group in groups],
        weights=[streams[group].weight for group in groups],
        groups=groups,
        floors=[stream.floor for stream in streams],
        queue_unit=pipeline.dataset.queue_unit,
    )


def limits_of(pipeline: PipelineSpec, columns: int) -> Limits:
    """Bounds of the queue. columns: the most that are read of a row.

    A chunk's bytes are known only once it is decoded, so rows of thousands of columns come in
    smaller chunks from the first one on: each column counts as one number.
    """
    buffers = pipeline.job.buffers
    narrow = buffers.bytes_max // _CHUNKS // (_NUMBER_BYTES * max(1, columns))
    return Limits(
        minibatch_rows=pipeline.train.minibatch_rows,
        rows_max=buffers.rows_max,
        bytes_max=buffers.bytes_max,
        chunk_rows=max(1, min(buffers.chunk_rows, narrow)),
        flush_seconds=buffers.flush_seconds,
        hours_together=hours_together(pipeline),
        settle_seconds=buffers.settle_seconds,
    )


BEAT_SECONDS = 0.2
PHASES_SECONDS = 1.0
# A trial reader must answer within deadline / this, before this process itself counts as hung.
_EXAMINATION_PARTS = 2
CLAIM_SECONDS = 5.0  # the trainer may learn about an epoch a moment before the executor does
_LOG = logging.getLogger(__name__)


class DataExecutor:
    def __init__(self, link: RoleLink, attempt: int) -> None:
        request = link.request("the data executor")
        pipeline = request.pipeline_spec()
        self._link, self._index, self._attempt = link, link.index, attempt
        self._instance = uuid.uuid4().hex
        self._pipeline = pipeline
        specs = request.source_specs()
        self._queue_sources = queue_sources_of(pipeline, specs)
        self._kinds = {spec.kind for spec in specs.values()}
        self._letter_bytes = {
            use.name: specs[use.source].dead_letter_bytes_max for use in pipeline.uses
        }
        self._readers = Readers(request)
        widest = max(len(self._readers.columns(name)) for name in self._readers.names)
        self._limits = limits_of(pipeline, widest)
        self._client = DriverClient(link, patience_seconds(pipeline.job))
        schema = served_schema(self._readers.layout, self._readers.times)
        self._server = FlightFrameServer(link, schema, self._claim)
        self._threads = RunnerThreads("runner")
        self._phases, self._phases_due = PhaseSeconds(), 0.0
        self._changed = threading.Condition()
        self._epoch: ServingEpoch | None = None
        self._last = False
        self._sequence = 0
        self._outcomes: list[Outcome] = []  # of the epoch that is served now
        self._error: ForebayError | None = None
        self._closed = False
        self._beats = threading.Thread(target=self._beat_on, name="beats", daemon=True)

    def run(self) -> None:
        """Lease and serve until the driver is gone for good.

        Raises:
            FencedError: when a newer process has this index.
            InfrastructureError: when no driver answers any more.
        """
        start_arrow(self._kinds)
        threading.Thread(target=start_kernels, name="kernels", daemon=True).start()
        self._server.start()
        self._register()
        self._beats.start()
        try:
            while self._error is None:
                progressed()
                try:
                    self._follow(self._lease())
                except NotKnownError:
                    self._register()
        except InfrastructureError as error:
            self._error = self._error or error
        finally:
            self.close()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._switch(None)
        self._server.close()
        self._client.close()
        self._readers.close()
        self._threads.close()

    def _register(self) -> None:
        call = Registration(
            executor=self._index,
            instance=self._instance,
            attempt=self._attempt,
            address=self._server.address,
            pid=os.getpid(),
        )
        registered = self._client.call("register", call, Registered)
        self._link.registered(self._server.address)
        _LOG.info("registered at driver incarnation %d", registered.incarnation)

    def _lease(self) -> LeaseReply:
        self._sequence += 1
        call = LeaseCall(
            executor=self._index,
            instance=self._instance,
            epoch=self._epoch.number if self._epoch else 0,
            sequence=self._sequence,
            last=self._last,
            horizon=self._epoch.horizon if self._epoch else None,
        )
        return self._client.call("lease", call, LeaseReply)

    def _follow(self, reply: LeaseReply) -> None:
        current = self._epoch.number if self._epoch else 0
        if reply.epoch != current:
            self._switch(self._opened(reply) if reply.epoch else None)
        if self._epoch is not None:
            self._epoch.start(reply)
            self._last = reply.last

    def _opened(self, reply: LeaseReply) -> ServingEpoch:
        deadline = self._pipeline.job.failover.progress_deadlines.data.total_seconds()
        return ServingEpoch(
            reply.epoch,
            self._index,
            PrioritisedQueue(self._queue_sources, self._limits, reply.readers),
            self._readers,
            PendingLetters(self._letter_bytes),
            Examiner(self._link, self._examined, deadline / _EXAMINATION_PARTS),
            # One for each epoch: a read that hangs in a lost one must not delay the next.
            threading.Semaphore(self._pipeline.job.roles.data.threads),
            self._threads,
            self._phases,
            self._ended,
        )

    def _examined(self, task: DataTask, suspicion: Suspicion, poison: Poison | None) -> None:
        news = Examined(
            executor=self._index,
            instance=self._instance,
            task=task,
            suspicion=suspicion,
            poison=poison,
        )
        self._client.call("examined", news, Done)

    def _switch(self, epoch: ServingEpoch | None) -> None:
        with self._changed:
            old, self._epoch = self._epoch, epoch
            self._outcomes.clear()
            self._last = False
            self._changed.notify_all()
        if old is not None:
            old.close()

    def _claim(self, number: int) -> NextFrame | None:
        """The frames of an epoch, for the first caller that asks for them."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or (self._epoch and self._epoch.number >= number),
                CLAIM_SECONDS,
            )
            epoch = self._epoch
            if epoch is None or epoch.number != number or epoch.is_claimed:
                return None
            epoch.is_claimed = True
            return epoch.next

    def _ended(self, epoch: ServingEpoch, outcome: Outcome) -> None:
        with self._changed:
            if epoch is self._epoch:
                self._outcomes.append(outcome)
                self._changed.notify_all()

    def _beat_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._outcomes, BEAT_SECONDS)
                if self._closed:
                    return
                outcomes, self._outcomes = self._outcomes, []
                epoch = self._epoch
            self._report_phases()
            try:
                self._beat(epoch, outcomes)
            except NotKnownError:
                continue  # the thread that leases registers again
            except ForebayError as error:
                with self._changed:
                    self._error = self._error or error
                self._client.close()
                return

    def _report_phases(self) -> None:
        now = time.monotonic()
        if now >= self._phases_due:
            self._phases_due = now + PHASES_SECONDS
            with suppress(OSError):  # a full disk ends whoever needs it, not this
                self._link.report_phases(self._phases.seconds())

    def _beat(self, epoch: ServingEpoch | None, outcomes: list[Outcome]) -> None:
        beat = ExecutorBeat(
            executor=self._index,
            instance=self._instance,
            epoch=epoch.number if epoch else 0,
            done=[each.grant.task.task_id for each in outcomes if each.failure is None],
            hours=epoch.reading() if epoch else {},
        )
        self._client.call("executor_beat", beat, Done)
        for each in outcomes:
            if epoch is not None and each.failure is not None:
                self._report(epoch.number, each.grant, each.failure)

    def _report(self, epoch: int, grant: Grant, cause: ErrorReport) -> None:
        failure = TaskFailure(
            executor=self._index,
            instance=self._instance,
            epoch=epoch,
            task_id=grant.task.task_id,
            attempt=grant.attempt,
            cause=cause,
        )
        try:
            self._client.call("failed", failure, Done)
        except FencedError as error:
            _LOG.info("a failure was reported too late: %s", error)


def main(arguments: list[str] | None = None) -> None:
    run_role(DATA, run, arguments)


def run(given: Given) -> None:
    """In a process that is set up."""
    executor = DataExecutor(given.link, given.attempt)
    given.stop.then(executor.close)
    executor.run()
