"""How every process of a job starts and ends.

It ends with its supervisor, logs to stderr, and turns an error into an exit code by remedy and a
file that says why (`forebay.executors.job.folder`).
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.errors import InfrastructureError
from forebay.executors.job.folder import pulse_path, write_failure
from forebay.system.liveness import Activity, start_pulse
from forebay.system.output.error_report import ErrorReport
from forebay.system.output.process_log import set_up_logging
from forebay.system.processes.parent import JOB_ID_NAME, PARENT_PID_NAME, die_with_parent

# A role whose body ended may have threads that have not: it gets this long to close them.
EXIT_GRACE_SECONDS = 10.0
_LOG = logging.getLogger(__name__)


def role_arguments(role: str, arguments: list[str] | None, *names: str) -> argparse.Namespace:
    """`job`, the folder, and a whole number for each further name; `arguments` None: sys.argv's.

    Raises:
        SystemExit: when the arguments are wrong.
    """
    parser = argparse.ArgumentParser(prog=f"forebay.executors.{role}")
    parser.add_argument("--job", type=Path, required=True)
    for name in names:
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args(arguments)


def start_role(role: str, index: int, job_dir: Path) -> None:
    """Set up the process of a role; the first call in each role's `main`.

    The process ends (SIGKILL) with its supervisor. Log lines go to stderr in UTC; a crash in C++
    and SIGUSR1 write the stacks of all threads there too. Neither the process nor its children dump
    core. From now on the supervisor sees whether the process makes progress.

    Raises:
        SystemExit: when the supervisor ended before this call.
        OSError: when the job's folder cannot be written.
    """
    os.environ.setdefault(JOB_ID_NAME, job_dir.name)
    set_up_logging(f"{role}-{index}")
    _dump_no_memory()
    die_with_parent()
    if PARENT_PID_NAME not in os.environ:
        return
    if not started_by_supervisor():
        _LOG.error("the supervisor ended while this process started")
        raise SystemExit(InfrastructureError.exit_code)
    start_pulse(pulse_path(job_dir, role, index))


def _dump_no_memory() -> None:
    # A core dump holds secrets, is as large as the process, and a payload may cause it. It would be
    # written to the working directory, which is the project's folder.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def started_by_supervisor() -> bool:
    """Whether this process is a role whose supervisor is alive and its parent."""
    return os.environ.get(PARENT_PID_NAME) == str(os.getppid())


@contextmanager
def role_exit(role: str, index: int, job_dir: Path) -> Iterator[None]:
    """Run a role's body; turn an exception into the failure file and the exit code.

    The body is an activity, which has to make progress. A process that a supervisor started ends at
    the latest `EXIT_GRACE_SECONDS` after its body, whatever threads are left. SystemExit and
    KeyboardInterrupt pass unchanged.

    Raises:
        SystemExit: with the code of the remedy, after an error.
    """
    try:
        with Activity(role):
            yield
    except Exception as error:
        failure = ErrorReport.of(error)
        _LOG.exception("%s-%d fails (exit code %d)", role, index, failure.exit_code)
        try:
            write_failure(job_dir, role, index, failure)
        except (OSError, InfrastructureError):
            # A full disk must not hide the exit code; the supervisor then names code and log.
            _LOG.exception("cannot write why %s-%d failed", role, index)
        _end_soon(failure.exit_code)
        raise SystemExit(failure.exit_code) from error
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
