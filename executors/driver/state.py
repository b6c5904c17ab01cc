"""What the driver knows: its executors, the open session, its orders to the trainer.

Nothing waits in here, and the only I/O is the journal and the ledger; `service` holds the lock
around every call and waits between them. docs/internals/protocol.md has the rules.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from forebay.errors import FencedError, InfrastructureError, NotKnownError
from forebay.executors.driver.journal import Journal, Record
from forebay.executors.driver.leases import TaskState
from forebay.executors.driver.window import ServedWindow
from forebay.executors.wire.messages import (
    ExecutorBeat,
    LeaseCall,
    LeaseReply,
    OpenWindow,
    Orders,
    Registration,
    Serving,
    StatusReply,
    TaskFailure,
    TrainerBeat,
)
from forebay.system.output.counted import counted
from forebay.system.output.error_report import ErrorReport

FATAL_EXIT_CODES = (1, 2, 3)  # a retry would not help
# A driver gives fewer numbers. With its start (16 bits) and submission (23), they fit into 63 bits.
_NUMBER_BITS = 24
_NO_LEASES = LeaseReply(epoch=0, window="", generation=0, grants=[], last=True)
_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class RegisteredExecutor:
    """A registered data executor. epoch 0: it has none in this session (yet)."""

    registration: Registration
    seen: float
    epoch: int = 0
    sequence: int = 0
    reply: LeaseReply | None = None


@dataclass(eq=False)
class Session:
    """A window that is open for one trainer process."""

    number: int
    served: ServedWindow
    sealed_step: int
    version: int = 1
    sequence: int = 0
    fencing: set[int] = field(default_factory=set)
    error: ErrorReport | None = None


class DriverState:
    """The whole state. Not thread-safe by itself."""

    def __init__(
        self,
        journal: Journal,
        incarnation: int,
        open_window: Callable[[str, int], ServedWindow],
        heartbeat_timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Recover the newest trainer from the journal. incarnation: the driver's own attempt."""
        self.incarnation = incarnation
        self._journal = journal
        self._open_window = open_window
        self._timeout = heartbeat_timeout
        self._clock = clock
        self._opened, self._failed = _failures_of_last_open(journal.records)
        self._numbers = 0
        self._members: dict[int, RegisteredExecutor] = {}
        self.session: Session | None = None

    # Data executors -------------------------------------------------------------------------

    def register(self, call: Registration) -> None:
        """Register a data executor; an older process with its index loses it.

        Raises:
            FencedError: when a newer process has it, or another one as this attempt (no
                supervisor starts two).
        """
        known = self._members.get(call.executor)
        if known is not None:
            newest = known.registration
            if newest.instance != call.instance and newest.attempt >= call.attempt:
                raise FencedError(f"attempt {newest.attempt} is data executor {call.executor} now")
            self._lose(known)
        self._members[call.executor] = RegisteredExecutor(call, self._clock())
        _LOG.info("data executor %d registered, pid %d", call.executor, call.pid)

    def member(self, executor: int, instance: str) -> RegisteredExecutor:
        """The calling member; the call shows that it is alive.

        Raises:
            NotKnownError: when it is not registered (any more).
        """
        member = self._members.get(executor)
        if member is None or member.registration.instance != instance:
            raise NotKnownError(f"data executor {executor} is not registered")
        member.seen = self._clock()
        return member

    def assign_epoch(self, member: RegisteredExecutor) -> None:
        """Give a member an epoch of the open session, at the start of a call: it is alive."""
        if self.session is not None and member.epoch == 0 and self.session.error is None:
            member.epoch = self._number()
            self.session.version += 1

    def lease(self, member: RegisteredExecutor, call: LeaseCall) -> LeaseReply | None:
        """The answer to a waiting executor, or None while nothing has changed."""
        session = self.session
        if session is None or member.epoch == 0:
            needs_call = session is not None and session.error is None
            return _NO_LEASES if call.epoch or needs_call else None
        served = session.served
        grants = [] if session.error else served.lease(member.epoch, len(self._members))
        last = served.has_all
        known = (call.epoch, call.last, call.horizon)
        if not grants and known == (member.epoch, last, served.horizon):
            return None
        return LeaseReply(
            epoch=member.epoch,
            window=served.window,
            generation=served.generation,
            grants=grants,
            last=last,
            pending=self._pending(),
            readers=served.readers,
            horizon=served.horizon,
        )

    def unchanged(self, member: RegisteredExecutor, call: LeaseCall) -> LeaseReply:
        """The answer to an executor for which nothing changed while it waited.

        Pending tasks are sent again: once there is a second executor, they may be read by that one,
        and an executor that still expected them would wait in every hour.
        """
        pending = self._pending()
        return (member.reply or _NO_LEASES).model_copy(
            update={"epoch": call.epoch, "grants": [], "last": call.last, "pending": pending}
        )

    def _pending(self) -> dict[str, int]:
        """What is still pending, if there is only one executor to read it."""
        session = self.session
        return session.served.pending if session and len(self._members) == 1 else {}

    def beat_of_executor(self, call: ExecutorBeat) -> None:
        member = self.member(call.executor, call.instance)
        if self.session is not None and call.epoch and call.epoch == member.epoch:
            self.session.served.advance(call.epoch, call.hours)
            self.session.served.read(call.epoch, call.done)

    def failed(self, call: TaskFailure) -> None:
        """A task could not be read any further: fence its epoch and retry, or end the window.

        Raises:
            FencedError: when the lease was already lost.
        """
        member = self.member(call.executor, call.instance)
        session = self.session
        if session is None or call.epoch != member.epoch:
            raise FencedError(f"task {call.task_id}: epoch {call.epoch} is over")
        served = session.served
        row = served.row_of(call.task_id)
        if not served.leases.holds(call.epoch, row, call.attempt):
            raise FencedError(f"task {call.task_id}: attempt {call.attempt} lost its lease")
        may_retry = served.leases.fail(row)
        _LOG.warning("task %s failed: %s", call.task_id, call.cause.message)
        cause = call.cause
        if cause.exit_code in FATAL_EXIT_CODES:
            self._stop(session, cause)
            return
        self._journal.append("failure", task=call.task_id, message=cause.message[:500])
        if may_retry:
            self._lose(member)
            return
        often = counted(served.leases.failures[row], "time")
        message = f"task {call.task_id} failed {often}, the last time: {cause.message}"
        self._stop(session, ErrorReport.of(InfrastructureError(message)))

    def expire(self) -> bool:
        """Lose members that have been silent for too long. True when there was one."""
        now = self._clock()
        silent = [m for m in self._members.values() if now - m.seen > self._timeout]
        for member in silent:
            index = member.registration.executor
            _LOG.warning("data executor %d is silent: its leases are lost", index)
            self._lose(member)
            del self._members[index]
        return bool(silent)

    # The trainer ----------------------------------------------------------------------------

    def open(self, call: OpenWindow) -> Session:
        """Serve a window from the positions of the call; the session before it ends.

        Raises:
            FencedError: when a newer trainer owns the job.
            ForebayError: when the plan cannot be read.
        """
        self._check_trainer(call.trainer)
        served = self._open_window(call.window, call.generation)
        served.restore(call.used)
        opened = (call.trainer, call.window, call.generation)
        if self._opened == opened:
            for task_id, times in self._failed.items():
                served.leases.failures[served.row_of(task_id)] = times
        else:
            self._opened, self._failed = opened, Counter()
            self._journal.append(
                "open", trainer=call.trainer, window=call.window, generation=call.generation
            )
        for member in self._members.values():
            member.epoch = 0
        self.session = Session(self._number(), served, sealed_step=call.step)
        _LOG.info(
            "window %s generation %d is open for trainer %d: %s tasks, %d of them used",
            call.window,
            call.generation,
            call.trainer,
            "growing" if served.tasks is None else served.tasks,
            served.leases.count(TaskState.USED),
        )
        return self.session

    def grows(self, served: ServedWindow) -> bool:
        """Whether a window is served that has not ended."""
        session = self.session
        return session is not None and session.served is served and session.error is None

    def close(self, served: ServedWindow) -> None:
        """A window has all of its tasks."""
        served.close()
        if self.session is not None and self.session.served is served:
            self.session.version += 1

    def refuse(self, served: ServedWindow, cause: ErrorReport) -> None:
        """A window cannot grow: it ends."""
        if self.session is not None and self.session.served is served:
            self._stop(self.session, cause)

    def session_of(self, trainer: int, number: int) -> Session:
        """The open session, if it is the caller's.

        Raises:
            FencedError: when a newer trainer owns the job.
            NotKnownError: when the session is over or was never ours.
        """
        self._check_trainer(trainer)
        if self.session is None or self.session.number != number:
            raise NotKnownError(f"session {number} is not open")
        return self.session

    def beat_of_trainer(self, session: Session, call: TrainerBeat) -> None:
        """Positions used, fences answered, streams broken. The same beat again changes nothing."""
        if call.sequence <= session.sequence:
            return
        session.sequence = call.sequence
        session.served.use(call.used)
        for epoch, taken in call.fenced.items():
            session.served.fenced(epoch, taken)
            session.fencing.discard(epoch)
            session.version += 1
        for member in self._members.values():
            if member.epoch in call.broken:
                _LOG.info("the stream of epoch %d broke", member.epoch)
                self._lose(member)

    def orders(self, session: Session) -> Orders:
        serving = [
            Serving(executor=index, epoch=member.epoch, address=member.registration.address)
            for index, member in sorted(self._members.items())
            if member.epoch
        ]
        return Orders(
            version=session.version,
            serving=serving,
            fence=sorted(session.fencing),
            tasks=session.served.tasks,
            error=session.error,
        )

    def status(self) -> StatusReply:
        session = self.session
        return StatusReply(
            incarnation=self.incarnation,
            tasks=session.served.counts() if session else {},
            rows_used=dict(session.served.rows_used) if session else {},
            executors=list(self._members),
            sealed_step=session.sealed_step if session else 0,
        )

    def _number(self) -> int:
        """Ascends over all drivers of a job: no number of an epoch or session is used twice."""
        self._numbers += 1
        if self._numbers >> _NUMBER_BITS:
            gone = f"data executors came and went {self._numbers - 1:,} times"
            raise InfrastructureError(f"{gone}: see in the driver's log why, and run again")
        return (self.incarnation << _NUMBER_BITS) + self._numbers

    def _check_trainer(self, number: int) -> None:
        if number < self._opened[0]:
            raise FencedError(f"trainer {self._opened[0]} has taken over from trainer {number}")

    def _lose(self, member: RegisteredExecutor) -> None:
        """No more rows of the member's epoch count: ask the trainer for a fence."""
        epoch, member.epoch = member.epoch, 0
        if epoch and self.session is not None:
            self.session.served.leases.lose(epoch)
            self.session.fencing.add(epoch)
            self.session.version += 1

    def _stop(self, session: Session, cause: ErrorReport) -> None:
        session.error = session.error or cause
        session.version += 1


def _failures_of_last_open(records: list[Record]) -> tuple[tuple[int, str, int], Counter[str]]:
    """Trainer, window and generation that were opened last, and how often its tasks failed."""
    key, failed = (0, "", 0), Counter[str]()
    for record in records:
        if record["kind"] == "open":
            key, failed = (record["trainer"], record["window"], record["generation"]), Counter()
        elif record["kind"] == "failure":
            failed[record["task"]] += 1
    return key, failed
