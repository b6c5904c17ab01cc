"""A job without processes: the submitter is its own supervisor and also runs the trainer."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from forebay.config.specs.jobs import STANDING
from forebay.datatasks.sources.parquet import footer_process, footer_reader
from forebay.executors.job import host
from forebay.executors.job.request import JobRequest
from forebay.executors.planes.base import Ended, EndReason, Launch, Resized
from forebay.executors.role import Stop, given_of
from forebay.executors.roles.table import ROLES, TRAINER
from forebay.executors.supervisor import supervisor
from forebay.executors.trainer import loop
from forebay.executors.trainer.train import run
from forebay.system.processes.identity import ProcessIdentity
from support.sequences.live_reader import LiveReader

# What trainers of lines that stand hold, with what their next jobs need.
_STANDING: dict[tuple[str, ...], tuple[str, dict[str, Any]]] = {}


def forked(work: Callable[[], object]) -> int:
    """Do this in a child of this process; its number."""
    pid = os.fork()
    if pid != 0:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - a child of a fork must not return
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def code_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class _Execution:
    """The trainer has ended when it was started; the others live on and do nothing."""

    limits = Resized("applied")

    def __init__(self, role: str) -> None:
        identity = ProcessIdentity.of(os.getpid())
        assert identity is not None
        self.identity = identity
        self._role = role

    def poll(self) -> int | None:
        return 0 if self._role == "trainer" else None

    def ended(self) -> Ended:
        return Ended(EndReason.EXIT, 0)

    def usage(self) -> None:
        """Nothing of its own."""


class InProcessPlane:
    """Calls the trainer where others start it. kept: what a trainer that stays still holds."""

    kills = False

    def __init__(self, kept: dict[str, Any]) -> None:
        self.kept = kept

    def start(self, launch: Launch) -> _Execution:
        if launch.role == "trainer":
            given = given_of(TRAINER, launch.arguments, Stop())
            run(dataclasses.replace(given, kept=self.kept))  # its error ends the job
        return _Execution(launch.role)

    def stop(self, grace_seconds: float) -> None:
        """No process is there."""


class _Ended:
    """The supervisor as its submitter sees it."""

    def poll(self) -> int:
        return 0


def _start(held: host.LocalJob, request: JobRequest, command: Sequence[str]) -> Any:
    """Stands where the supervisor's process is started; its lock is released by the submitter.

    Of a line that stands, the trainer holds what it did after the job before, unless that failed.
    """
    line = (request.home, request.pipeline_name, request.line)
    needs, kept = _STANDING.pop(line, ("", {}))
    wanted = " ".join([request.line_fingerprint, *command])
    plane = InProcessPlane(kept if needs == wanted else {})
    lock = os.dup(held.lock.descriptor)
    code = supervisor.Supervisor(held.folder.path, ROLES, lock=lock, plane=plane).run()
    if code == 0 and request.pipeline_spec().job.process == STANDING:
        _STANDING[line] = (wanted, plane.kept)
    return _Ended()


class FooterChild:
    """Stands where footers are parsed by a child, which a footer may kill."""

    def __init__(self, *_: object) -> None:
        """No process is there."""

    def answer(self, call: bytes) -> bytes:
        head, _, content = call.partition(b"\n")
        asked: dict[str, Any] = json.loads(head)
        return json.dumps(footer_process.answer(asked, content)).encode()

    def close(self) -> None:
        """No process was there."""


def parse_footers_here() -> None:
    footer_reader.ReadingChild = FooterChild  # type: ignore[misc,assignment]


def run_jobs_here(replace: Callable[[Any, str, object], None] = setattr) -> None:
    """From now on jobs of this process run in it.

    replace: as `setattr`; a test gives one that puts back what it has replaced.
    """
    replace(loop, "RemoteReader", LiveReader)
    replace(host.LocalJob, "start", _start)
    # No process is waited for.
    replace(supervisor, "_TICK_SECONDS", 0.001)
    # The page cache outlives a process, so what a kill leaves is the same without it.
    replace(os, "fsync", lambda _descriptor: None)
