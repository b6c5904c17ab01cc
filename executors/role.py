"""How every process of a job starts and ends.

It ends with its supervisor, logs to stderr, and turns an error into an exit code by remedy, having
told its supervisor why.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.link.local import LocalLink, add_link_arguments
from forebay.executors.link.protocol import RoleLink
from forebay.executors.link.role_calls import AHEAD_NAME, RoleCalls, Stop
from forebay.executors.roles.table import Role
from forebay.system.liveness import Activity, start_pulse
from forebay.system.output.error_report import ErrorReport
from forebay.system.output.process_log import set_up_logging
from forebay.system.processes.parent import JOB_ID_NAME, PARENT_PID_NAME, die_with_parent

# A role whose body ended may have threads that have not: it gets this long to close them.
EXIT_GRACE_SECONDS = 10.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Given:
    """What one process of a role is given.

    attempt: ascends over all processes in its place. lease_epoch: of the model line, for a role
    that trains it; every change of the line is checked against it. stop: only a thread, or a
    process that stays, gets to know that it is to end; any other process is killed. kept: what a
    process that stays holds for its line's next job.
    """

    link: LocalLink
    attempt: int
    lease_epoch: int | None
    stop: Stop
    kept: dict[str, Any] = field(default_factory=dict)


@contextmanager
def role_process(role: Role, arguments: list[str] | None = None) -> Iterator[Given]:
    """The `main` of a role: set its process up, run the block, end as `role_exit` does.

    arguments: as `Role` says; None for sys.argv's.

    Raises:
        SystemExit: when the arguments are wrong, after an error, or as `start_role` does.
        OSError: see `start_role`.
    """
    given = given_of(role, arguments, Stop())
    start_role(given.link)
    with role_exit(given.link):
        yield given


def run_role(
    role: Role,
    run: Callable[[Given], None],
    arguments: list[str] | None = None,
    prepare: Callable[[Given], None] = lambda _given: None,
) -> None:
    """The `main` of a role that stays where its supervisor does; raises as `role_process`.

    It runs one job after the other then, each with a link of its own. After an error it ends, as
    does a trainer that was stopped: what it holds is of no window's end. prepare: what it does when
    it is started ahead, with the arguments of the line's last job.
    """
    calls = RoleCalls.inherited()
    if calls is None:
        with role_process(role, arguments) as given:
            run(given)
        return
    given, ahead = given_of(role, arguments, calls.first), os.environ.pop(AHEAD_NAME, None)
    start_role(given.link, pulses=ahead is None)
    if ahead is not None:
        _prepare(role, prepare, given)
    while True:
        if ahead is None:
            with role_exit(given.link, stays=True):
                _run_one(role, run, given)
            calls.over()
        ahead = None
        following = calls.next()
        if following is None:
            return
        begin, stop = following
        begin.enter()
        given = replace(given_of(role, begin.arguments, stop), kept=given.kept)
        start_pulse(given.link.pulse)


def _prepare(role: Role, prepare: Callable[[Given], None], given: Given) -> None:
    try:
        prepare(given)
    except (ForebayError, OSError) as error:  # the next job meets it, or does without
        _LOG.warning("%s is not prepared for its next job: %s", role.name, error)
    else:
        _LOG.info("%s is ready for its next job", role.name)


def _run_one(role: Role, run: Callable[[Given], None], given: Given) -> None:
    try:
        run(given)
    except ForebayError:
        if role.trains_line or not given.stop.is_set():
            raise  # otherwise it met what was closed
    if role.trains_line and given.stop.is_set():
        raise InfrastructureError("the trainer was stopped")


def run_in_thread(
    role: Role, run: Callable[[Given], None], arguments: Sequence[str], stop: Stop
) -> int:
    """Run a role in a thread of a process that has more of them; the result is its exit code.

    What belongs to a whole process stays as it is: its log, its signals, how it ends.
    """
    given = given_of(role, arguments, stop)
    try:
        with Activity(role.name):
            run(given)
    except Exception as error:  # noqa: BLE001 - told to the supervisor, as by a process
        if stop.is_set():  # it met what was closed
            return -signal.SIGTERM
        return _told(given.link, error)
    return 0


def _told(link: RoleLink, error: Exception) -> int:
    """Log why a role fails, and tell its supervisor; the exit code."""
    failure = ErrorReport.of(error)
    _LOG.error(
        "%s-%d fails (exit code %d)", link.role, link.index, failure.exit_code, exc_info=error
    )
    try:
        link.failed(failure)
    except (OSError, InfrastructureError):
        # A full disk must not hide the exit code; the supervisor then names code and log.
        _LOG.exception("cannot write why %s-%d failed", link.role, link.index)
    return failure.exit_code


def given_of(role: Role, arguments: Sequence[str] | None, stop: Stop) -> Given:
    """From a command line, or (None) `sys.argv`; SystemExit when it is wrong."""
    parser = argparse.ArgumentParser(prog=role.module)
    add_link_arguments(parser)
    for name in ("index", "attempt", *(("lease-epoch",) if role.trains_line else ())):
        parser.add_argument(f"--{name}", type=int, required=True)
    found = parser.parse_args(arguments)
    link = LocalLink(found.job, role.name, found.index)
    return Given(link, found.attempt, getattr(found, "lease_epoch", None), stop)


def link_of_child(arguments: list[str] | None = None) -> RoleLink:
    """The link of the role that started this process; it says nothing of itself.

    Raises:
        SystemExit: when the arguments are wrong.
    """
    parser = argparse.ArgumentParser()
    add_link_arguments(parser)
    return LocalLink(parser.parse_args(arguments).job)


def start_role(link: LocalLink, *, pulses: bool = True) -> None:
    """Set up the process of a role; the first call in each role's `main`.

    The process ends (SIGKILL) with its supervisor. Log lines go to stderr in UTC; a crash in C++
    and SIGUSR1 write the stacks of all threads there too. Neither the process nor its children dump
    core. From now on the supervisor sees whether the process makes progress, if it `pulses`.

    Raises:
        SystemExit: when the supervisor ended before this call.
        OSError: when its pulse cannot be written.
    """
    os.environ.setdefault(JOB_ID_NAME, link.job_id)
    set_up_logging(f"{link.role}-{link.index}")
    _dump_no_memory()
    die_with_parent()
    if PARENT_PID_NAME not in os.environ:
        return
    if not started_by_supervisor():
        _LOG.error("the supervisor ended while this process started")
        raise SystemExit(InfrastructureError.exit_code)
    if pulses:
        start_pulse(link.pulse)


def _dump_no_memory() -> None:
    # A core dump holds secrets, is as large as the process, and a payload may cause it. It would be
    # written to the working directory, which is the project's folder.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def started_by_supervisor() -> bool:
    """Whether this process is a role whose supervisor is alive and its parent."""
    return os.environ.get(PARENT_PID_NAME) == str(os.getppid())


@contextmanager
def role_exit(link: RoleLink, *, stays: bool = False) -> Iterator[None]:
    """Run a role's body; turn an exception into what its supervisor is told and the exit code.

    The body is an activity, which has to make progress. A process that a supervisor started ends at
    the latest `EXIT_GRACE_SECONDS` after its body, whatever threads are left. SystemExit and
    KeyboardInterrupt pass unchanged. stays: the process goes on after a body without an error.

    Raises:
        SystemExit: with the code of the remedy, after an error.
    """
    try:
        with Activity(link.role):
            yield
    except Exception as error:
        exit_code = _told(link, error)
        _end_soon(exit_code)
        raise SystemExit(exit_code) from error
    if not stays:
        _end_soon(0)


def end_at_once() -> None:
    """End a role whose work is done and durable with exit code 0, if a supervisor started it.

    Python would need a second to tear TensorFlow down, for no benefit.
    """
    if started_by_supervisor():
        _end_now(0)


def _end_soon(exit_code: int) -> None:
    if not started_by_supervisor():
        return
    timer = threading.Timer(EXIT_GRACE_SECONDS, _end_late, [exit_code])
    timer.daemon = True
    timer.start()


def _end_late(exit_code: int) -> None:
    _LOG.error(
        "threads still run %s s after the end: %s",
        EXIT_GRACE_SECONDS,
        ", ".join(thread.name for thread in threading.enumerate() if not thread.daemon),
    )
    _end_now(exit_code)


def _end_now(exit_code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)
