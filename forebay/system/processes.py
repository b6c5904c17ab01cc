"""Operating system side of our processes: identity, end with the parent, orphans, log set-up."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from forebay.errors import InfrastructureError
from forebay.system.message import Message

JOB_ID_NAME = "FOREBAY_JOB_ID"
HOME_NAME = "FOREBAY_HOME"
# Pid of the process that started this one, which thereby sees whether that is still its parent.
PARENT_PID_NAME = "FOREBAY_PARENT_PID"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Counted from the process state, the first field behind the command name in /proc/PID/stat.
_STAT_STATE = 0
_STAT_PARENT = 1
_STAT_START_TIME = 19
_LIBC = ctypes.CDLL(None, use_errno=True)
_LOG = logging.getLogger(__name__)


class ProcessIdentity(Message):
    """One process, told apart from a later one with the same pid.

    create_time: clock ticks from boot to the process's start (field 22 of /proc/PID/stat).
    """

    pid: int
    create_time: int

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process that has this pid now; None where there is none."""
        fields = _stat_fields(pid)
        return cls(pid=pid, create_time=int(fields[_STAT_START_TIME])) if fields else None

    def alive(self) -> bool:
        """Whether this very process still runs; one that only waits to be reaped does not."""
        fields = _stat_fields(self.pid)
        return bool(fields) and (
            int(fields[_STAT_START_TIME]) == self.create_time and fields[_STAT_STATE] not in "ZX"
        )

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to this very process. False when it has ended."""
        try:
            # The descriptor pins the process before its identity is compared: a pid that was
            # reused earlier is seen, and one that is reused later is not hit.
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.alive():
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True


def set_up_logging(name: str) -> None:
    """Log lines of this process to stderr, with UTC time and the process's name."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(f"%(asctime)sZ %(levelname)s {name} %(name)s: %(message)s")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def die_with_parent() -> None:
    """Ask the kernel for SIGKILL when the thread that started this process ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is out of reach."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def reap_orphan() -> bool:
    """Reap one ended child. Call it only when every child of one's own was polled.

    Returns:
        Whether there was one.
    """
    try:
        pid, _ = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return pid != 0


def descendants() -> list[ProcessIdentity]:
    """All living processes below the calling one, children first."""
    parents: dict[int, list[int]] = {}
    for pid in _all_pids():
        fields = _stat_fields(pid)
        if fields:
            parents.setdefault(int(fields[_STAT_PARENT]), []).append(pid)
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return [found_one for pid in found if (found_one := _living(pid)) is not None]


def processes_of_job(job_id: str, home: Path) -> list[ProcessIdentity]:
    """Living processes that carry this job's id and home in their environment.

    Without the calling process and those above it (a shell that exports both, say).
    """
    return processes_with({JOB_ID_NAME: job_id, HOME_NAME: str(home.absolute())})


def processes_with(
    variables: Mapping[str, str], without: str | None = None
) -> list[ProcessIdentity]:
    """Living processes that were started with these environment variables.

    Without the calling process and those above it, and without those that have `without` set.
    """
    above = _own_line()
    marks = {f"{name}={value}".encode() for name, value in variables.items()}
    found = []
    for pid in _all_pids():
        if pid in above:
            continue
        identity = ProcessIdentity.of(pid)
        if identity is None:
            continue
        given = _environment(pid)
        unwanted = without is not None and any(
            line.startswith(f"{without}=".encode()) for line in given
        )
        if marks <= given and not unwanted and identity.alive():
            found.append(identity)
    return found


def environment_variable(pid: int, name: str) -> str | None:
    """A variable of the environment that a process was started with; None where it has none."""
    start = f"{name}=".encode()
    found = (line for line in _environment(pid) if line.startswith(start))
    return next((line[len(start) :].decode() for line in found), None)


def kill_all(processes: list[ProcessIdentity], wait_seconds: float = 5.0) -> None:
    """SIGKILL these processes and wait until they ended.

    Raises:
        InfrastructureError: when one is still there (stuck in the kernel) at the deadline.
    """
    for process in processes:
        process.signal(signal.SIGKILL)
    deadline = time.monotonic() + wait_seconds
    while left := [process.pid for process in processes if process.alive()]:
        if time.monotonic() > deadline:
            raise InfrastructureError(f"processes {left} do not end: see their state with ps")
        time.sleep(0.01)


def _own_line() -> set[int]:
    """Pids of the calling process, its parent, and so on."""
    line: set[int] = set()
    pid = os.getpid()
    while pid > 0 and pid not in line:
        line.add(pid)
        fields = _stat_fields(pid)
        pid = int(fields[_STAT_PARENT]) if fields else 0
    return line


def _living(pid: int) -> ProcessIdentity | None:
    identity = ProcessIdentity.of(pid)
    return identity if identity is not None and identity.alive() else None


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _stat_fields(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The command name stands in brackets and may hold blanks and brackets itself.
    return text.rpartition(")")[2].split()


def _environment(pid: int) -> set[bytes]:
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return set()  # ended meanwhile, or another user's: not one of ours


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
