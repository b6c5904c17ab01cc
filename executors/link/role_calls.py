"""What a supervisor that stays says to a process that stays: the next job, and when it is over.

One channel for each process, which it inherits: a socket that keeps messages apart.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from forebay.system.message import Message

# The descriptor of a process's end of its channel.
CHANNEL_NAME = "FOREBAY_ROLE_CHANNEL"
# Set where the process is started ahead of the first job that it runs.
AHEAD_NAME = "FOREBAY_ROLE_AHEAD"
_STOP, _OVER = b"stop", b"over"
_MESSAGE_BYTES = 1 << 20


class Begin(Message):
    """A job to run. arguments: see `Role`. environment: what differs from the job before."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    log: str

    def enter(self) -> None:
        """Make the process, which does nothing now, that of the job."""
        os.environ.update(self.environment)
        tempfile.tempdir = None  # it remembers the folder of the job before
        append_output(Path(self.log))


def append_output(path: Path) -> None:
    """Append what this process prints to another file from now on.

    Raises:
        OSError: when it cannot be opened.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)


class Stop:
    """Whether a role is to end: as a thread of a larger process, or in one that stays."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._calls: list[Callable[[], object]] = []

    def then(self, call: Callable[[], object]) -> None:
        """Make this call, in the thread that wants the end."""
        self._calls.append(call)
        if self._event.is_set():
            call()

    def set(self) -> None:
        if not self._event.is_set():
            self._event.set()
            for call in self._calls:
                call()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self) -> None:
        self._event.wait()


class RoleCalls:
    """The process's end. A thread of its own listens, so that a job can be stopped."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self.first = self._stop = Stop()  # of the job that the process was started for
        self._begins: queue.SimpleQueue[tuple[Begin, Stop] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="calls", daemon=True).start()

    @classmethod
    def inherited(cls) -> RoleCalls | None:
        """None where the supervisor ends its processes with their job. Children do not get it."""
        number = os.environ.pop(CHANNEL_NAME, None)
        if number is None:
            return None
        channel = socket.socket(fileno=int(number))
        channel.set_inheritable(False)
        return cls(channel)

    def over(self) -> None:
        """Say that the job is over."""
        self._channel.send(_OVER)

    def next(self) -> tuple[Begin, Stop] | None:
        """Wait for the next job; None once the supervisor is gone."""
        return self._begins.get()

    def _listen(self) -> None:
        with suppress(OSError):
            while message := self._channel.recv(_MESSAGE_BYTES):
                if message == _STOP:  # maybe of a job that has just ended
                    self._stop.set()
                else:
                    self._stop = Stop()
                    self._begins.put((Begin.model_validate_json(message), self._stop))
        self._begins.put(None)


class ProcessCalls:
    """The supervisor's end."""

    def __init__(self) -> None:
        self._channel, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(0)

    def begin(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> bool:
        """Whether the process could be told; it may have ended."""
        begin = Begin(arguments=tuple(arguments), environment=dict(environment), log=str(log))
        return self._sent(begin.model_dump_json().encode())

    def stop(self) -> None:
        self._sent(_STOP)

    def is_over(self) -> bool:
        """Whether the process says that its job is over: once for each job."""
        with suppress(OSError):  # nothing yet, or it has ended
            return self._channel.recv(_MESSAGE_BYTES) == _OVER
        return False

    def close(self) -> None:
        self._channel.close()

    def _sent(self, message: bytes) -> bool:
        try:
            self._channel.send(message)
        except OSError:
            return False
        return True
