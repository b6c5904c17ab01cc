"""A runner: the supervisor of one job of a line after the other, whose processes stay.

So a window costs its rows, not the start of an interpreter and of TensorFlow for each process. The
job's contract is that of a supervisor of its own: its row, its lock, its folder and its log.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from pydantic import ValidationError

from forebay.config.specs.jobs import StandingSpec
from forebay.config.specs.windows import WindowGrid
from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.job.host import SUPERVISOR_COMMAND
from forebay.executors.job.runners import (
    ANSWER_SECONDS,
    COMMAND_NAME,
    MESSAGE_BYTES,
    WARM_MEMORY_NAME,
    Answer,
    Call,
    RunnerPlace,
    end_runner,
    look_at,
    needs_of,
    received,
    runners_of,
    warm_memory,
)
from forebay.executors.planes.standing import StandingPlane
from forebay.executors.roles.table import SUPERVISOR, roles
from forebay.executors.supervisor.supervisor import (
    STOP_GRACE_SECONDS,
    Supervisor,
    request_of,
    run_held,
    supervisor_arguments,
    taken_over,
)
from forebay.home.paths import Home
from forebay.system.files.locks import FileLock
from forebay.system.output.process_log import set_up_logging
from forebay.system.processes.ends import when_told_to_end

_LOOK_SECONDS = 1.0
_BUDGET_LOCK = "budget.lock"
_AHEAD_LOG = "ahead.log"
_LOG = logging.getLogger(__name__)


class Handed(NamedTuple):
    """A job that was handed to this runner."""

    folder: Path
    lock: int


class Desk:
    """Answers at a runner's socket, in a thread: it takes a job while it has none."""

    def __init__(self, here: socket.socket, needs: dict[str, str], job: str) -> None:
        """job: the id of the one that runs."""
        self.memory_bytes = 0
        self._here, self._needs = here, needs
        self._changed = threading.Condition()
        self._job = job
        self._handed: Handed | None = None
        self.is_ending = False
        self._idle_since = time.monotonic()
        threading.Thread(target=self._serve, name="desk", daemon=True).start()

    def rest(self) -> None:
        """The job is over: the next one may come."""
        with self._changed:
            self._job, self._idle_since = "", time.monotonic()

    def next(self, seconds: float) -> Handed | None:
        """The next job; None when there is none for so long, or the runner is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._handed is not None or self.is_ending, seconds)
            handed, self._handed = self._handed, None
            return handed

    def end(self) -> Handed | None:
        """Take no further job; the one that is being handed over is the last."""
        with self._changed:
            self.is_ending = True
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: not self._job or self._handed is not None, 2 * ANSWER_SECONDS
            )
            handed, self._handed = self._handed, None
            return handed

    def _serve(self) -> None:
        while self._here.fileno() >= 0:  # the runner closes the socket at its end
            try:
                there, _ = self._here.accept()
            except OSError:
                time.sleep(_LOOK_SECONDS)  # too many files are open
                continue
            with closing(there):
                there.settimeout(ANSWER_SECONDS)
                with suppress(OSError, ValidationError):
                    call = Call.model_validate_json(there.recv(MESSAGE_BYTES))
                    self._answer(there, call)

    def _answer(self, there: socket.socket, call: Call) -> None:
        answer = self._answer_to(call)
        if call.ask != "run" or answer.says != "yes":
            there.send(answer.model_dump_json().encode())
            return
        lock = received(there, answer)
        with self._changed:
            if lock is None:
                self._job = ""  # whoever asked is gone
            else:
                self._handed = Handed(Path(call.job), lock)
            self._changed.notify_all()

    def _answer_to(self, call: Call) -> Answer:
        with self._changed:
            idle = 0.0 if self._job else time.monotonic() - self._idle_since
            told = Answer(says="yes", idle_seconds=idle, memory_bytes=self.memory_bytes)
            if self.is_ending:
                return told.model_copy(update={"says": "ending"})
            if self._job:
                return told.model_copy(update={"says": "busy", "job": self._job})
            if call.ask == "run" and call.needs != self._needs:
                names = sorted(
                    name
                    for name in call.needs.keys() | self._needs.keys()
                    if call.needs.get(name) != self._needs.get(name)
                )
                _LOG.info("ending: %s changed since this runner started", ", ".join(names))
                self.is_ending = True
                told = told.model_copy(update={"says": "other"})
            elif call.ask == "end":
                self.is_ending = True
                told = told.model_copy(update={"says": "ending"})
            elif call.ask == "run":
                self._job = Path(call.job).name
            self._changed.notify_all()
            return told


class Runner:
    def __init__(
        self, place: RunnerPlace, home: Home, spec: StandingSpec, grid: WindowGrid
    ) -> None:
        self._place, self._home, self._spec, self._grid = place, home, spec, grid
        self._plane = StandingPlane(place.name)

    def run(self, first: Handed, needs: dict[str, str]) -> int:
        """Run jobs until none comes for `idle`, one fails, or another runner is wanted.

        The result is the exit code of the last job.
        """
        try:
            with ExitStack() as stack:
                here = self._entered(stack)
                desk = None if here is None else Desk(here, needs, first.folder.name)
                return self._run(first, desk) if desk is None else self._run_on(first, desk)
        finally:
            self._plane.close(STOP_GRACE_SECONDS)

    def _entered(self, stack: ExitStack) -> socket.socket | None:
        try:
            return stack.enter_context(self._place.listening())
        except (OSError, InfrastructureError) as error:
            _LOG.warning("the processes end with this job: nobody can reach a runner: %s", error)
            return None

    def _run_on(self, first: Handed, desk: Desk) -> int:
        def terminate(_number: int, _frame: FrameType | None) -> None:
            desk.is_ending = True  # nothing that waits: this interrupts whoever holds the lock

        code, handed = 0, first
        while True:
            code = self._run(handed, desk)
            when_told_to_end(terminate)
            if code == 0:
                self._bound_memory(desk)
            following = self._awaited(desk) if code == 0 else desk.end()
            if following is None:
                return code
            handed = following

    def _run(self, handed: Handed, desk: Desk | None) -> int:
        """Run one job; its lock is free once nothing of it runs any more, and the next may come."""
        held = taken_over(handed.folder, handed.lock)
        if held is None:
            if desk is not None:
                desk.rest()
            return 1
        return run_held(handed.folder, held, self._plane, None if desk is None else desk.rest)

    def _awaited(self, desk: Desk) -> Handed | None:
        """The next job; None after `idle`, or once its socket is gone, or its home.

        With `ahead` the processes are there again before the next window is due, once.
        """
        idle = self._spec.idle.total_seconds()
        return self._waited(desk, idle) or self._ahead(desk, idle) or desk.end()

    def _ahead(self, desk: Desk, idle: float) -> Handed | None:
        if self._spec.ahead is None or desk.is_ending or not self._place.is_own:
            return None
        ahead, now = self._spec.ahead.total_seconds(), datetime.now(UTC)
        left = (self._grid.at(now).end - now).total_seconds()
        if left > ahead:
            _LOG.info("the processes end, until %g s before the window's end", ahead)
            self._plane.close(STOP_GRACE_SECONDS)
            held, desk.memory_bytes = desk.memory_bytes, 0
            handed = self._waited(desk, left - ahead)
            if handed is not None or desk.is_ending or not self._place.is_own:
                return handed
            if not self._has_room(desk, held):
                return self._waited(desk, ahead + idle)
            log = self._place.folder / _AHEAD_LOG
            try:
                log.unlink(missing_ok=True)
                self._plane.start_ahead(log)
            except (OSError, ForebayError) as error:
                _LOG.warning("the processes do not start ahead: %s", error)
                return None
        return self._waited(desk, min(left, ahead) + idle, measures=True)

    def _has_room(self, desk: Desk, memory_bytes: int) -> bool:
        """Whether processes that held so much last may start before their next job comes."""
        budget, desk.memory_bytes = warm_memory(), memory_bytes
        if budget is None or _is_within(budget, self._home, self._place, desk):
            return True
        _LOG.info("the processes do not start ahead: runners would hold more than the budget")
        desk.memory_bytes = 0
        return False

    def _waited(self, desk: Desk, seconds: float, *, measures: bool = False) -> Handed | None:
        """The next job, if it comes in time. measures: what processes hold that just started."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self._place.is_own:
            if measures:
                desk.memory_bytes = self._plane.memory_bytes
            handed = desk.next(min(_LOOK_SECONDS, left))
            if handed is not None or desk.is_ending:
                return handed
        return None

    def _bound_memory(self, desk: Desk) -> None:
        desk.memory_bytes = self._plane.memory_bytes
        if self._spec.memory is not None and desk.memory_bytes > self._spec.memory:
            _LOG.info("the processes start anew: they hold more than standing.memory")
            self._plane.close(STOP_GRACE_SECONDS)
            desk.memory_bytes = 0
        budget = warm_memory()
        if budget is not None and not _is_within(budget, self._home, self._place, desk):
            _LOG.info("ending: runners hold more than %s", WARM_MEMORY_NAME)
            desk.is_ending = True  # a job that came meanwhile is its last


def _is_within(budget: int, home: Home, own: RunnerPlace, desk: Desk) -> bool:
    """End other runners, the one first that has waited longest, until all are within a budget.

    One runner of a home decides at a time: two would end each other.
    """
    lock = FileLock(home.runners / _BUDGET_LOCK)
    if not lock.acquire(0.0):
        return True
    try:
        return _ended_within(budget, home, own, desk)
    finally:
        lock.release()


def _ended_within(budget: int, home: Home, own: RunnerPlace, desk: Desk) -> bool:
    others = [place for place in runners_of(home).values() if place.folder != own.folder]
    told = [(answer, place) for place in others if (answer := look_at(place, Call(ask="look")))]
    total = desk.memory_bytes + sum(answer.memory_bytes for answer, _ in told)
    idle = [one for one in told if one[0].says == "yes" and one[0].memory_bytes]
    for answer, place in sorted(idle, key=lambda one: -one[0].idle_seconds):
        if total <= budget:
            break
        try:
            running = end_runner(place)
        except (InfrastructureError, OSError) as error:
            _LOG.warning("%s", error)
            continue
        if not running:  # it has not got a job meanwhile
            total -= answer.memory_bytes
    return total <= budget


def main(arguments: list[str] | None = None) -> None:
    """Run the job, and those after it where its line has a runner."""
    job, lock = supervisor_arguments(arguments)
    set_up_logging(SUPERVISOR)
    runs = None if lock is None else _runner_of(job)
    if runs is None or lock is None:
        raise SystemExit(Supervisor(job, roles(), lock=lock).run())
    runner, needs = runs
    raise SystemExit(runner.run(Handed(job, lock), needs))


def _runner_of(job: Path) -> tuple[Runner, dict[str, str]] | None:
    """With what its jobs need; None where a job's processes end with it."""
    with suppress(ForebayError):  # the request cannot be read: the supervisor reports why
        request = request_of(job)
        spec, home = request.pipeline_spec().job, Home(Path(request.home))
        command = os.environ.get(COMMAND_NAME, " ".join(SUPERVISOR_COMMAND)).split(" ")
        if spec.stays:
            place = RunnerPlace(home, request.pipeline_name, request.line)
            grid = request.pipeline_spec().dataset.grid
            return Runner(place, home, spec.standing, grid), needs_of(request, command)
    return None
