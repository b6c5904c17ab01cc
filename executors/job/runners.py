"""Runners of a home on this host: supervisors that stay for the next job of their line.

A runner listens in a folder that only its user may enter. Whoever submits a job hands its lock over
the socket, so that the job has a holder at every moment; see `folder`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import socket
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from forebay.config.role_environment import declared_variables
from forebay.config.specs.base import parse_memory
from forebay.config.yaml.environment import names_of
from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.job.request import JobRequest
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.home.privacy import make_home
from forebay.system.environment import PLANNING, inherited
from forebay.system.files.durable import open_private
from forebay.system.files.locks import FileLock, closed_after
from forebay.system.files.private_socket import connected, inode_of, listening, lock_of, socket_of
from forebay.system.message import Message
from forebay.system.processes.parent import JOB_ID_NAME, PARENT_PID_NAME

# It answers at once, unless the whole process is stopped.
ANSWER_SECONDS = 5.0
_BUSY_SECONDS = 2.0
_POLL_SECONDS = 0.02
# How long a runner that was told to end may keep its place.
_LEAVE_SECONDS = 1.0
MESSAGE_BYTES = 1 << 20
_KIND = "runner"
# The most memory of all runners of a home on this host; above it those end that wait longest.
WARM_MEMORY_NAME = "FOREBAY_WARM_MEMORY"
# They differ between processes that otherwise start the same job.
_OF_PROCESS = frozenset({JOB_ID_NAME, PARENT_PID_NAME, ENVIRONMENT_NAME, "TERM", "NO_COLOR"})
# The command that a runner was started with, as whoever submits writes it.
COMMAND_NAME = "FOREBAY_RUNNER_COMMAND"
_LOG = logging.getLogger(__name__)


class Call(Message):
    """ask: run the job in this folder, say what you do, or end.

    needs: see `needs_of`.
    """

    ask: Literal["run", "look", "end"]
    job: str = ""
    needs: dict[str, str] = Field(default_factory=dict)


class Answer(Message):
    """says: I run no job, so hand the lock over; I run one; I was started for others; I end.

    job: the id of the one that it runs.
    """

    says: Literal["yes", "busy", "other", "ending"]
    job: str = ""
    idle_seconds: float = 0.0
    memory_bytes: int = 0


def job_environment(request: JobRequest) -> dict[str, str]:
    """What the supervisor of a job gets of this process's environment."""
    job = request.pipeline_spec().job
    declared = declared_variables(job, names_of(request.pipeline) | names_of(request.sources))
    return inherited(os.environ, (*PLANNING, *declared))


def needs_of(request: JobRequest, command: Sequence[str]) -> dict[str, str]:
    """What has to be the same for two jobs to run in the same processes, by name.

    Of variables, which may be secrets, there are only hashes.
    """
    variables = {
        f"${name}": hashlib.sha256(value.encode()).hexdigest()
        for name, value in job_environment(request).items()
        if name not in {*_OF_PROCESS, COMMAND_NAME}
    }
    return {
        "its declarations": request.line_fingerprint,
        "this version": version("forebay"),
        "the command": " ".join(command),
        "the folder": str(Path.cwd()),
        **variables,
    }


def warm_memory() -> int | None:
    """What FOREBAY_WARM_MEMORY says, in bytes; None where it is not set.

    Raises:
        ConfigError: when it is no amount of memory.
    """
    given = os.environ.get(WARM_MEMORY_NAME)
    try:
        return parse_memory(given) if given else None
    except ValueError as error:
        raise ConfigError(f"{WARM_MEMORY_NAME}: {error}") from error


class RunnerPlace:
    """Where the runner of one line listens, if there is one."""

    def __init__(self, home: Home, pipeline: str, line: str) -> None:
        self.folder = home.runner(pipeline, line)
        # No other runner of this host has it, whatever its home. It is not the id of a job: nobody
        # who looks for a job's processes finds a runner's.
        here = zlib.crc32(str(self.folder.absolute()).encode())
        self.name = f"{_KIND}:{pipeline}.{line}:{here:08x}"
        self._home = home
        self._bound: tuple[int, int] | None = None

    @property
    def is_own(self) -> bool:
        """Whether whoever connects here reaches this process, which listens."""
        return self._bound is not None and inode_of(socket_of(self.folder)) == self._bound

    def require_private(self) -> None:
        """Do nothing where there is none yet, or no folder: a runner does without one.

        Raises:
            InfrastructureError: when its folder is open to others, or somebody else's.
        """
        with suppress(OSError), closed_after(open_private(self.folder)):
            pass

    def ask(self, call: Call, lock: int | None = None) -> Answer | None:
        """What the runner answers; None where none answers.

        lock: of the job that it is asked to run. After `yes` the runner has it too, unless it died.

        Raises:
            InfrastructureError: when its folder is open to others.
        """
        try:
            with closing(connected(self.folder, ANSWER_SECONDS)) as there:
                there.send(call.model_dump_json().encode())
                answer = Answer.model_validate_json(there.recv(MESSAGE_BYTES))
                if answer.says == "yes" and lock is not None:
                    socket.send_fds(there, [b"lock"], [lock])
                return answer
        except (OSError, ValidationError):  # none, one that ends just now, or one that is stopped
            return None

    @contextmanager
    def listening(self) -> Iterator[socket.socket | None]:
        """The socket of this process as the line's runner; None where another one is it."""
        make_home(self._home)
        with listening(self.folder, _LEAVE_SECONDS) as here:
            self._bound = None if here is None else inode_of(socket_of(self.folder))
            yield here


def look_at(place: RunnerPlace, call: Call) -> Answer | None:
    """As `ask`, for one of many: one that is open to others is left alone, and the log says so."""
    try:
        return place.ask(call)
    except InfrastructureError as error:
        _LOG.warning("the runner %s is not asked: %s", place.name, error)
        return None


def received(there: socket.socket, answer: Answer) -> int | None:
    """Answer a call to run a job; the descriptor of its lock, None if it does not come."""
    try:
        there.send(answer.model_dump_json().encode())
        _, descriptors, _, _ = socket.recv_fds(there, MESSAGE_BYTES, 1)
    except OSError:
        return None
    return descriptors[0] if descriptors else None


def runners_of(home: Home) -> dict[str, RunnerPlace]:
    """All places of runners, by pipeline and line."""
    found = sorted(home.runners.glob("*/*")) if home.runners.is_dir() else []
    return {
        f"{each.parent.name}.{each.name}": RunnerPlace(home, each.parent.name, each.name)
        for each in found
    }


def runner_named(home: Home, name: str) -> RunnerPlace | None:
    """The place of the runner whose processes carry this name; None for a job's id."""
    kind, _, rest = name.partition(":")
    pipeline, _, line = rest.partition(":")[0].partition(".")
    return RunnerPlace(home, pipeline, line) if kind == _KIND else None


class HandedOn:
    """A `Started`: a job that a runner has. Whether it is still there, its lock says."""

    def poll(self) -> int:
        return -signal.SIGKILL


def hand_on(
    place: RunnerPlace, request: JobRequest, command: Sequence[str], folder: Path, lock: FileLock
) -> HandedOn | None:
    """Let the line's runner run the job, whose lock it gets; None where none can.

    One that was started for other declarations, or with other variables, ends. One that runs a job
    may be about to end it.
    """
    call = Call(ask="run", job=str(folder.absolute()), needs=needs_of(request, command))
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        answer = place.ask(call, lock.descriptor)
        if answer is not None and answer.says == "yes":
            return HandedOn()
        if answer is None or answer.says != "busy" or time.monotonic() > deadline:
            return None
        time.sleep(_POLL_SECONDS)


def end_runner(place: RunnerPlace) -> str:
    """Let a runner end unless it runs a job; that job's id, or an empty text.

    Returns once it takes no more jobs; its processes end within seconds.

    Raises:
        InfrastructureError: when it does not let its place go.
    """
    answer = place.ask(Call(ask="end"))
    if answer is None or answer.says == "busy":
        return "" if answer is None else answer.job
    lock = lock_of(place.folder)
    if not lock.acquire(2 * ANSWER_SECONDS):
        raise InfrastructureError(f"{place.name} does not end")
    lock.release()
    return ""
