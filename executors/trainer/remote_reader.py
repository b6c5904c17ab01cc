"""The trainer's side of the data path: minibatches in, used and sealed positions out.

Threads: the caller's (steps), one that beats to the driver, one for each stream of frames.
They share a `_Session`, guarded by one lock. docs/internals/protocol.md has the rules.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from forebay.config.specs.datasets import source_of
from forebay.config.specs.jobs import JobSpec
from forebay.datatasks.tasks import TaskProgress
from forebay.errors import DataError, ForebayError, InfrastructureError, NotKnownError
from forebay.executors.link.protocol import RoleLink
from forebay.executors.trainer.inbox import Frame, Inbox
from forebay.executors.wire.flight import FlightStream, open_stream
from forebay.executors.wire.messages import (
    Done,
    Opened,
    OpenWindow,
    Orders,
    Progress,
    SealCall,
    Serving,
    TrainerBeat,
)
from forebay.executors.wire.rpc import DriverClient, patience_seconds
from forebay.mixture.features.layout import FeatureLayout
from forebay.system.liveness import waiting
from forebay.system.message import Message
from forebay.system.output.counted import counted

OPEN_SECONDS = 30.0
SEAL_SECONDS = 60.0
# One wait for the next frame.
FRAME_WAIT_SECONDS = 0.5
# On top of the time after which a data executor or driver that hangs is ended.
SILENCE_SECONDS = 120.0
_LOG = logging.getLogger(__name__)
Reply = TypeVar("Reply", bound=Message)


@dataclass(eq=False)
class _Session:
    """One window as it is open at the driver."""

    pipeline: str
    window: str
    generation: int
    step: int
    sealed: Progress
    inbox: Inbox
    number: int
    tasks: int | None
    dead_rows_max: dict[str, int]
    version: int = 0
    sequence: int = 0
    streams: dict[int, FlightStream | None] = field(default_factory=dict)
    fenced: dict[int, Progress] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    error: ForebayError | None = None

    @property
    def has_ended(self) -> bool:
        """Whether each task is at its end; never while the window grows."""
        return self.tasks is not None and self.inbox.ended >= self.tasks

    def check_dead_rows(self) -> None:
        for source, most in self.dead_rows_max.items():
            found = self.inbox.dead_rows[source]
            if found > most:
                raise DataError(
                    f"source {source!r}: {counted(found, 'dead letter')} in window {self.window}, "
                    f"more than dead_letter_rows_max ({most}): correct the rows, or raise it "
                    f"(`forebay dead ls {self.pipeline} --window {self.window}` says why)"
                )


class RemoteReader:
    """Takes minibatches from data executors, window by window. Used from one thread."""

    def __init__(
        self, link: RoleLink, layout: FeatureLayout, source_names: Sequence[str], attempt: int
    ) -> None:
        """attempt: the process's number; the driver refuses readers with lower ones from now on."""
        request = link.request("the trainer")
        pipeline, specs = request.pipeline_spec(), request.source_specs()
        job = pipeline.job
        self._link, self._pipeline = link, pipeline.name
        self._layout = layout
        self._credits = job.buffers.credits
        self._dead_rows_max = {
            name: most
            for name in source_names
            if (most := specs[source_of(name)].dead_letter_rows_max) is not None
        }
        self._patience = patience_seconds(job)
        self._client = DriverClient(link, self._patience)
        self._changed = threading.Condition()
        self._opening = threading.Lock()  # one `open` call at a time
        self._session: _Session | None = None
        self._trainer = attempt
        self._closed = False
        self._beats: threading.Thread | None = None

    def begin(
        self, window: str, generation: int, sealed: Mapping[str, TaskProgress], step: int
    ) -> None:
        """Open a window at the driver; every task starts from `sealed`.

        Raises:
            FencedError: when a newer trainer owns the job.
            ForebayError: when the plan cannot be read, no driver answers, or this is closed.
        """
        self._leave()
        with self._opening:
            positions = dict(sealed)
            opened = self._open(window, generation, step, positions, positions)
            session = _Session(
                pipeline=self._pipeline,
                window=window,
                generation=generation,
                step=step,
                sealed=positions,
                inbox=Inbox(positions, grows=opened.tasks is None),
                number=opened.session,
                tasks=opened.tasks,
                dead_rows_max=self._dead_rows_max,
            )
            with self._changed:
                self._require_open()  # `close` may have come while the driver was asked
                self._session = session
                self._changed.notify_all()
        if self._beats is None:
            self._beats = threading.Thread(target=self._beat_on, name="beats", daemon=True)
            self._beats.start()

    def next(self, timeout_seconds: float) -> Frame | None:
        """The next frame; None when none came in time, or at once when the window is finished.

        Raises:
            DataError: when data of the window is bad.
            InfrastructureError: when a task failed too often, no driver is left, or it is closed.
            FencedError: when a newer trainer owns the job.
        """
        session = self._current()
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            while True:
                self._require_open()
                if session.error is not None:
                    raise session.error
                session.check_dead_rows()
                frame = session.inbox.take()
                if frame is not None:
                    return frame
                left = deadline - time.monotonic()
                if left <= 0 or session.has_ended:
                    return None
                self._changed.wait(left)

    def used(self, frame: Frame) -> dict[str, TaskProgress]:
        """A step trained on the frame: its positions count, and its sender may send another.

        Returns where those of its tasks that were begun had been.
        """
        session = self._current()
        with self._changed:
            before = session.inbox.use(frame)
            stream = session.streams.get(frame.epoch)
        if stream is not None:
            stream.grant(1)
        return before

    @property
    def orders(self) -> tuple[int, int]:
        """Changes whenever a data executor comes or goes, or the driver is restarted."""
        session = self._current()
        return session.number, session.version

    @property
    def grows(self) -> bool:
        """Whether the window may get further tasks."""
        return self._current().tasks is None

    def finished(self) -> bool:
        """Whether every task of the window ended and its rows were used."""
        session = self._current()
        with self._changed:
            if not session.has_ended:
                return False
            session.check_dead_rows()
            return True

    def progress(self) -> dict[str, TaskProgress]:
        """Used positions now. Call it between steps."""
        session = self._current()
        with self._changed:
            return dict(session.inbox.used)

    def sealed(self, step: int, progress: Mapping[str, TaskProgress]) -> None:
        """Tell the driver that a checkpoint with these positions is durable.

        At the end of the window, they are committed to storage (Kafka offsets) on return.

        Raises:
            InfrastructureError: when that did not succeed in time.
        """
        session = self._current()
        positions = dict(progress)
        with self._changed:
            session.sealed = positions
            session.step = step
        give_up = time.monotonic() + self._patience
        while True:
            with self._changed:
                number = session.number
            call = SealCall(trainer=self._trainer, session=number, step=step, progress=positions)
            try:
                self._client.call("seal", call, Done, SEAL_SECONDS)
            except NotKnownError:
                self._await_resume(session, number, give_up)
            else:
                return

    def dropped_rows(self) -> int:
        """Rows received in this window by this process and thrown away because of a fence."""
        with self._changed:
            return self._session.inbox.dropped_rows if self._session else 0

    def close(self) -> None:
        self._leave()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._client.close()
        if self._beats is not None:
            self._beats.join(5.0)

    # The session --------------------------------------------------------------------------

    def _current(self) -> _Session:
        session = self._session
        if session is None:
            raise InfrastructureError("no window was begun")
        return session

    def _require_open(self) -> None:
        if self._closed:
            raise InfrastructureError("the reader is closed")

    def _leave(self) -> None:
        with self._changed:
            session, self._session = self._session, None
            streams = list(session.streams.values()) if session else []
            if session is not None:
                session.inbox.fence_all()
            self._changed.notify_all()
        _close_all(streams)

    def _open(
        self, window: str, generation: int, step: int, sealed: Progress, used: Progress
    ) -> Opened:
        call = OpenWindow(
            trainer=self._trainer,
            window=window,
            generation=generation,
            step=step,
            sealed=sealed,
            used=used,
        )
        return self._client.call("open", call, Opened, OPEN_SECONDS)

    def _resume(self, session: _Session, number: int) -> None:
        """The driver was restarted: fence everything, then open the window from what is taken."""
        with self._opening:
            with self._changed:
                if self._session is not session or session.number != number:
                    return
                positions = session.inbox.fence_all()
                streams = list(session.streams.values())
                session.streams.clear()
                session.fenced.clear()
                session.broken.clear()
                sealed, step = session.sealed, session.step
            _close_all(streams)
            _LOG.info("the driver does not know this session: reopening %s", session.window)
            opened = self._open(session.window, session.generation, step, sealed, positions)
            with self._changed:
                session.number, session.version, session.sequence = opened.session, 0, 0
                session.tasks = opened.tasks
                self._changed.notify_all()

    def _await_resume(self, session: _Session, number: int, give_up: float) -> None:
        with self._changed:
            while session.number == number and session.error is None:
                left = give_up - time.monotonic()
                if left <= 0:
                    raise InfrastructureError("the driver did not reopen the window in time")
                with waiting():
                    self._changed.wait(left)
            if session.error is not None:
                raise session.error

    # Beats --------------------------------------------------------------------------------

    def _beat_on(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (self._session is None or self._session.error):
                    self._changed.wait()
                session = self._session
                if self._closed or session is None:
                    return
                beat = self._beat(session)
            self._beat_once(session, beat)

    def _beat(self, session: _Session) -> TrainerBeat:
        session.sequence += 1
        fenced, session.fenced = session.fenced, {}
        broken, session.broken = session.broken, set()
        return TrainerBeat(
            trainer=self._trainer,
            session=session.number,
            sequence=session.sequence,
            version=session.version,
            used=session.inbox.news(),
            fenced=fenced,
            broken=sorted(broken),
        )

    def _beat_once(self, session: _Session, beat: TrainerBeat) -> None:
        try:
            try:
                orders = self._client.call("beat", beat, Orders)
            except NotKnownError:
                self._resume(session, beat.session)
            else:
                self._obey(session, beat.session, orders)
        except ForebayError as error:
            self._fail(session, error)

    def _fail(self, session: _Session, error: ForebayError) -> None:
        with self._changed:
            session.error = session.error or error
            self._changed.notify_all()

    def _obey(self, session: _Session, number: int, orders: Orders) -> None:
        lost: list[FlightStream | None] = []
        started: list[Serving] = []
        with self._changed:
            if self._session is not session or session.number != number:
                return
            session.version, session.tasks = orders.version, orders.tasks
            self._changed.notify_all()
            if orders.error is not None:
                session.error = orders.error.exception()
                self._changed.notify_all()
            for epoch in orders.fence:
                session.fenced[epoch] = session.inbox.fence(epoch)
                lost.append(session.streams.pop(epoch, None))
            for serving in orders.serving:
                if serving.epoch not in session.streams:
                    session.streams[serving.epoch] = None
                    session.inbox.open(serving.epoch)
                    started.append(serving)
        _close_all(lost)
        for serving in started:
            threading.Thread(
                target=self._receive_from,
                args=(session, serving),
                name=f"frames-{serving.epoch}",
                daemon=True,
            ).start()

    # Frames -------------------------------------------------------------------------------

    def _receive_from(self, session: _Session, serving: Serving) -> None:
        try:
            stream = open_stream(self._link, serving.address, serving.epoch)
            with self._changed:
                wanted = session.inbox.is_open(serving.epoch)
                if wanted:
                    session.streams[serving.epoch] = stream
            if not wanted:
                stream.close()
            stream.grant(self._credits)
            self._receive_all(session, serving, stream)
        except InfrastructureError as error:
            _LOG.info("epoch %d: %s", serving.epoch, error)
        except (ValueError, TypeError) as error:
            _LOG.exception("epoch %d: a frame cannot be read", serving.epoch)
            self._fail(session, InfrastructureError(f"a frame cannot be read: {error}"))
        finally:
            with self._changed:
                if session.inbox.is_open(serving.epoch):
                    session.broken.add(serving.epoch)

    def _receive_all(self, session: _Session, serving: Serving, stream: FlightStream) -> None:
        expected = 0
        while (received := stream.receive()) is not None:
            head, batch = received
            if head.epoch != serving.epoch or head.sequence != expected:
                raise InfrastructureError(
                    f"frame {head.sequence} of epoch {head.epoch} came instead of frame "
                    f"{expected} of epoch {serving.epoch}"
                )
            expected += 1
            frame = Frame.of(head, batch, self._layout)
            with self._changed:
                if not session.inbox.put(frame):
                    stream.close()
                self._changed.notify_all()


class Silence:
    """How long no frame has come although rows are left: waiting for them must be bounded."""

    def __init__(self, reader: RemoteReader, window: str, job: JobSpec) -> None:
        deadlines = job.failover.progress_deadlines
        self._longest = SILENCE_SECONDS + max(deadlines.data, deadlines.driver).total_seconds()
        self._reader, self._window = reader, window
        self._seconds, self._orders = 0.0, reader.orders

    def broken(self) -> None:
        self._seconds = 0.0

    def lasted(self, seconds: float) -> None:
        """No frame came in one more wait. Only waits count: a frozen process receives nothing.

        Raises:
            InfrastructureError: when it lasts for too long, and no executor came or went.
        """
        self._seconds += seconds
        if self._orders != self._reader.orders:
            self._seconds, self._orders = 0.0, self._reader.orders
        if self._seconds > self._longest:
            raise InfrastructureError(
                f"window {self._window}: no rows came for {self._seconds:.0f} s although "
                "not all tasks have ended; see the logs of the driver and data executors"
            )


def _close_all(streams: Sequence[FlightStream | None]) -> None:
    for stream in streams:
        if stream is not None:
            stream.close()
