"""The driver's calls: one lock around its state, waiting calls, a watch for silent executors."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import grpc

from forebay.errors import NotKnownError
from forebay.executors.driver.hazards import Hazards
from forebay.executors.driver.offset_commits import SealCommitter
from forebay.executors.driver.state import DriverState
from forebay.executors.driver.window import ServedWindow
from forebay.executors.wire.messages import (
    Done,
    Examined,
    ExecutorBeat,
    LeaseCall,
    Opened,
    OpenWindow,
    Registered,
    Registration,
    SealCall,
    StatusCall,
    TaskFailure,
    TrainerBeat,
)
from forebay.executors.wire.rpc import Methods
from forebay.system.liveness import Activity, helping, progressed
from forebay.system.message import Message
from forebay.system.output.error_report import ErrorReport

if TYPE_CHECKING:
    import pyarrow as pa

WAIT_LONGEST_SECONDS = 2.0
GONE_POLL_SECONDS = 0.25  # how soon a waiting call notices that its caller is gone
COMMIT_SECONDS = 45.0


class DriverService:
    def __init__(self, state: DriverState, hazards: Hazards, commits: SealCommitter) -> None:
        self._state, self._hazards = state, hazards
        self._commits = commits
        self._changed = threading.Condition()
        self._stopped = False
        self._answering = Activity("answering calls")
        self._watch = threading.Thread(target=self._expire_on, name="watch", daemon=True)

    @property
    def methods(self) -> Methods:
        return {
            "register": (Registration, self.register),
            "lease": (LeaseCall, self.lease),
            "executor_beat": (ExecutorBeat, self.executor_beat),
            "failed": (TaskFailure, self.failed),
            "examined": (Examined, self.examined),
            "open": (OpenWindow, self.open),
            "beat": (TrainerBeat, self.beat),
            "seal": (SealCall, self.seal),
            "status": (StatusCall, self.status),
        }

    def start(self) -> None:
        self._watch.start()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._commits.stop()

    def register(self, call: Registration, _context: grpc.ServicerContext) -> Message:
        with self._changed:
            self._state.register(call)
            self._changed.notify_all()
            return Registered(incarnation=self._state.incarnation)

    def lease(self, call: LeaseCall, context: grpc.ServicerContext) -> Message:
        """Wait for tasks, for another epoch, or for the last task to be taken."""
        deadline = time.monotonic() + min(call.wait_seconds, WAIT_LONGEST_SECONDS)
        with self._changed:
            member = self._state.member(call.executor, call.instance)
            if call.sequence > member.sequence:
                self._state.assign_epoch(member)
                self._changed.notify_all()
            while True:
                if member.reply is not None and call.sequence <= member.sequence:
                    return member.reply  # the same call again, or one that was given up
                reply = self._state.lease(member, call)
                left = deadline - time.monotonic()
                if reply is None and (left <= 0 or self._stopped):
                    reply = self._state.unchanged(member, call)
                if reply is not None:
                    member.sequence, member.reply = call.sequence, reply
                    self._changed.notify_all()
                    return reply
                self._changed.wait(min(left, GONE_POLL_SECONDS))
                if not context.is_active():
                    raise NotKnownError("the caller is gone")
                self._state.member(call.executor, call.instance)

    def executor_beat(self, call: ExecutorBeat, _context: grpc.ServicerContext) -> Message:
        with self._changed:
            self._state.beat_of_executor(call)
            if call.done or call.hours:
                self._changed.notify_all()
            return Done()

    def failed(self, call: TaskFailure, _context: grpc.ServicerContext) -> Message:
        with self._changed:
            self._state.failed(call)
            self._changed.notify_all()
            return Done()

    def examined(self, call: Examined, _context: grpc.ServicerContext) -> Message:
        with self._changed:
            self._state.member(call.executor, call.instance)
            self._hazards.examined(call)  # whoever holds its lease
            return Done()

    def open(self, call: OpenWindow, _context: grpc.ServicerContext) -> Message:
        """The trainer begins a window, or continues with it after a restart of either side."""
        with self._changed, helping(self._answering):  # database and store may take their time
            session = self._state.open(call)
            if call.sealed:
                self._commits.submit(session.served, call.sealed)
            self._changed.notify_all()
            return Opened(session=session.number, tasks=session.served.tasks)

    def beat(self, call: TrainerBeat, context: grpc.ServicerContext) -> Message:
        """Take the trainer's news; wait until its orders change."""
        deadline = time.monotonic() + min(call.wait_seconds, WAIT_LONGEST_SECONDS)
        with self._changed:
            session = self._state.session_of(call.trainer, call.session)
            before = session.version
            self._state.beat_of_trainer(session, call)
            if session.version != before:
                self._changed.notify_all()
            while session.version == call.version and context.is_active() and not self._stopped:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
                self._state.session_of(call.trainer, call.session)
            return self._state.orders(session)

    def seal(self, call: SealCall, _context: grpc.ServicerContext) -> Message:
        """A checkpoint is durable. At the end of a window it is committed before the answer."""
        with self._changed:
            session = self._state.session_of(call.trainer, call.session)
            session.served.seal(call.progress)
            session.sealed_step = call.step
            number = self._commits.submit(session.served, call.progress)
            is_end = session.served.is_sealed
        if is_end:
            self._commits.wait(number, COMMIT_SECONDS)
        return Done()

    def status(self, _call: StatusCall, _context: grpc.ServicerContext) -> Message:
        with self._changed:
            return self._state.status()

    # For the thread that lets windows grow ----------------------------------------------------

    def growing(self) -> ServedWindow | None:
        """Wait until an open window is served; None when the driver stops."""
        with self._changed:
            while not self._stopped:
                session = self._state.session
                if session is not None and session.served.is_open and session.error is None:
                    return session.served
                self._changed.wait()
            return None

    def release(self, served: ServedWindow, horizon: int) -> bool:
        """Let rows be served up to a slice; False once the window is not served any more."""
        with self._changed:
            if served.horizon != horizon:
                served.leases.horizon = horizon
                self._changed.notify_all()
            return self._state.grows(served) and not self._stopped

    def grow(self, served: ServedWindow, tables: Sequence[pa.Table]) -> None:
        """A window has got tasks; those that it has already change nothing."""
        with self._changed:
            for tasks in tables:
                served.grow(tasks)
            self._changed.notify_all()

    def close(self, served: ServedWindow) -> None:
        with self._changed:
            self._state.close(served)
            self._changed.notify_all()

    def refuse(self, served: ServedWindow, cause: ErrorReport) -> None:
        with self._changed:
            self._state.refuse(served, cause)
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait, unless the driver stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, seconds)

    def _expire_on(self) -> None:
        """Its progress counts as the driver's: a lock held for long blocks all calls."""
        with self._answering, self._changed:
            while not self._stopped:
                progressed()
                if self._state.expire():
                    self._changed.notify_all()
                self._changed.wait(GONE_POLL_SECONDS)
