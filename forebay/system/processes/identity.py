"""Processes of this machine: their identity, those of a job, descendants, and killing them."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from forebay.errors import InfrastructureError
from forebay.system.files.locks import closed_after
from forebay.system.message import Message

# Counted from the process state, the first field after the command name in /proc/PID/stat.
_STAT_STATE = 0
_STAT_THREADS = 17
_STAT_START_TIME = 19


class ProcessIdentity(Message):
    """One process, distinguished from a later one with the same pid.

    create_time: clock ticks from boot to the process's start (field 22 of /proc/PID/stat).
    """

    pid: int
    create_time: int

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process that has this pid now; None if there is none."""
        found = _stat(pid)
        return cls(pid=pid, create_time=found.start) if found is not None else None

    def alive(self) -> bool:
        """Whether this very process still runs; one that is only waiting to be reaped does not.

        Its first thread may have ended before the others: until they have, files are open and locks
        held.
        """
        found = _stat(self.pid)
        if found is None or found.start != self.create_time:
            return False
        return found.state not in "ZX" or found.threads > 1

    def kill(self) -> bool:
        """SIGKILL this very process. False when it has ended."""
        return self.signal(signal.SIGKILL)

    def terminate(self) -> bool:
        """Ask this very process to end. False when it has ended."""
        return self.signal(signal.SIGTERM)

    def write_stacks(self) -> None:
        """Have it write its threads' stacks, even one that is stopped."""
        self.signal(signal.SIGUSR1)
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to this very process. False when it has ended."""
        # The descriptor pins the process before its identity is compared: a pid reused before that
        # is detected, and one reused later gets no signal.
        with suppress(ProcessLookupError), closed_after(os.pidfd_open(self.pid)) as descriptor:
            if self.alive():
                signal.pidfd_send_signal(descriptor, number)
                return True
        return False


class ProcessUsage(NamedTuple):
    """cpu_seconds: with those of children that have ended. Bytes are of resident memory."""

    cpu_seconds: float
    memory_bytes: int
    memory_peak_bytes: int


def usage_of(process: ProcessIdentity) -> ProcessUsage | None:
    """What a process uses; None once it has ended."""
    with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        found = psutil.Process(process.pid)
        times, resident_bytes = found.cpu_times(), int(found.memory_info().rss)
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
        if process.alive() and peak is not None:
            return ProcessUsage(sum(times[:4]), resident_bytes, int(peak[1]) << 10)
    return None


def descendants() -> list[ProcessIdentity]:
    """All living processes below the calling one."""
    found = [ProcessIdentity.of(each.pid) for each in psutil.Process().children(recursive=True)]
    return [process for process in found if process is not None and process.alive()]


def processes_with(
    variables: Mapping[str, str], without: str | None = None
) -> list[ProcessIdentity]:
    """Living processes that were started with these environment variables.

    Excludes the calling process and its ancestors, and those that have `without` set.
    """

    def wanted(pid: int) -> bool:
        given = _environment(pid)
        return variables.items() <= given.items() and without not in given

    above = _own_line()
    found = []
    for pid in psutil.pids():
        if pid in above or not wanted(pid):
            continue
        identity = ProcessIdentity.of(pid)
        # Checked again: the pid may have been reused between environment and identity.
        if identity is not None and wanted(pid) and identity.alive():
            found.append(identity)
    return found


def environment_variable(pid: int, name: str) -> str | None:
    """A variable of the environment that a process was started with; None if it is not set."""
    return _environment(pid).get(name)


def command_line(pid: int) -> list[str]:
    """Program and arguments of a process; empty if there is none."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).cmdline()
    return []


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far; 0 if there is none."""
    with suppress(psutil.NoSuchProcess):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return 0.0


def memory_bytes(pid: int) -> int:
    """Resident memory of a process; 0 if there is none."""
    with suppress(psutil.NoSuchProcess):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def kill_all(processes: list[ProcessIdentity], wait_seconds: float = 5.0) -> None:
    """SIGKILL these processes and wait until they have ended.

    Raises:
        InfrastructureError: when one is still there (stuck in the kernel) at the deadline.
    """
    for process in processes:
        process.kill()
    deadline = time.monotonic() + wait_seconds
    while left := [process.pid for process in processes if process.alive()]:
        if time.monotonic() > deadline:
            pids = ",".join(map(str, left))
            raise InfrastructureError(
                f"still running {wait_seconds:g} s after SIGKILL, stuck in the kernel: check the "
                f"disk (`ps -o pid,stat,wchan,args -p {pids}` shows what they wait for)"
            )
        time.sleep(0.01)


def _own_line() -> set[int]:
    """Pids of the calling process, its parent, and so on."""
    line: set[int] = set()
    pid = os.getpid()
    with suppress(psutil.NoSuchProcess):
        while pid > 0 and pid not in line:
            line.add(pid)
            pid = psutil.Process(pid).ppid()
    return line


def _environment(pid: int) -> dict[str, str]:
    # It may have ended meanwhile, or be another user's: not one of ours.
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return psutil.Process(pid).environ()
    return {}


class _Stat(NamedTuple):
    """start: in clock ticks from boot. state: of the first thread. threads: with that one."""

    start: int
    state: str
    threads: int


def _stat(pid: int) -> _Stat | None:
    """What a process is at this moment.

    Read by hand: psutil reports the start in seconds of a clock that may be set meanwhile, and the
    state in a second read, when the pid may belong to another process.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name is in brackets, and may itself contain blanks and brackets.
    fields = text.rpartition(")")[2].split()
    return _Stat(int(fields[_STAT_START_TIME]), fields[_STAT_STATE], int(fields[_STAT_THREADS]))
