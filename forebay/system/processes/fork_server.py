"""A process that has imported a program, and forks for each call of it.

So a call costs milliseconds instead of the program's imports. Each runs in a process of its own, in
a session of its own, with the caller's folder, stdout and stderr; it has the server's environment.
It ends with the server, and when its caller is gone.

Between its start and a fork the server may start no thread and open nothing that must not be used
twice.
"""

from __future__ import annotations

import gc
import io
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from forebay.system.files.private_socket import connected, listening
from forebay.system.message import Message
from forebay.system.processes.ends import KILLED, end_group
from forebay.system.processes.parent import die_with_parent

_MESSAGE_BYTES = 1 << 20
_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_STREAMS = 2

Program = Callable[[Sequence[str]], int]


class Call(Message):
    arguments: tuple[str, ...]
    folder: str


class Started(Message):
    pid: int


class Ended(Message):
    code: int


class ForkedProcess:
    """A call, as its caller sees it."""

    def __init__(self, there: socket.socket, pid: int) -> None:
        self.pid = pid
        self._there = there
        self._code: int | None = None

    @classmethod
    def start(
        cls, folder: Path, arguments: Sequence[str], stdout: int, stderr: int
    ) -> ForkedProcess:
        """Call the server that listens in a folder. stdout, stderr: descriptors.

        Raises:
            OSError: when there is none.
        """
        there = connected(folder, _ANSWER_SECONDS)
        try:
            call = Call(arguments=tuple(arguments), folder=str(Path.cwd()))
            content = call.model_dump_json().encode()
            socket.send_fds(there, [content], [stdout, stderr])
            answer = there.recv(_MESSAGE_BYTES)
            if not answer:
                raise ConnectionResetError("the server has ended")
            return cls(there, Started.model_validate_json(answer).pid)
        except BaseException:
            there.close()
            raise

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self._code

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code, negative for a signal; also if the server has ended, and it with that.

        Raises:
            subprocess.TimeoutExpired: when it has not ended after so many seconds.
        """
        if self._code is None:
            self._there.settimeout(seconds)
            try:
                told = self._there.recv(_MESSAGE_BYTES)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("forked", seconds or 0.0) from None
            except OSError:
                told = b""
            # A signal's handler, or another thread, may have been told meanwhile.
            if self._code is None:
                self._code = Ended.model_validate_json(told).code if told else KILLED
        return self._code

    def close(self) -> None:
        """Forget it: if it runs, it is ended."""
        self._there.close()

    def terminate_group(self, *, kill: bool = False) -> None:
        """Signal the process and its children, unless it is known to have ended."""
        if self._code is None:
            end_group(self.pid, kill=kill)


def serve(
    folder: Path, run: Program, idle_seconds: float, is_current: Callable[[], bool] = lambda: True
) -> None:
    """Answer calls until none came for so long, or the folder is gone; then remove it.

    is_current: whether what was imported is; otherwise it ends as soon as no call is under way.

    Returns at once where another server listens there.
    """
    with listening(folder, 0.0) as here:
        if here is None:
            return
        _Server(folder, here, run).serve(idle_seconds, is_current)
        shutil.rmtree(folder, ignore_errors=True)


class _Server:
    def __init__(self, folder: Path, here: socket.socket, run: Program) -> None:
        self._folder, self._here, self._run = folder, here, run
        self._selector = selectors.DefaultSelector()
        self._selector.register(here, selectors.EVENT_READ, self._accept)
        # By the descriptor of a process: its pid and its caller.
        self._running: dict[int, tuple[int, socket.socket]] = {}

    def serve(self, idle_seconds: float, is_current: Callable[[], bool]) -> None:
        gc.collect()
        gc.freeze()  # what was imported stays, and no call has to look through it
        used_at = time.monotonic()
        while self._folder.is_dir():
            ready = self._selector.select(_LOOK_SECONDS)
            for key, _ in ready:
                key.data(key.fileobj)
            if ready or self._running:
                used_at = time.monotonic()
            elif time.monotonic() - used_at > idle_seconds or not is_current():
                return

    def _accept(self, here: socket.socket) -> None:
        try:
            there, _ = here.accept()
        except OSError:  # too many files are open: stages that run go on, and one may end
            traceback.print_exc()
            time.sleep(_LOOK_SECONDS)
            return
        there.settimeout(_ANSWER_SECONDS)
        self._selector.register(there, selectors.EVENT_READ, self._called)

    def _called(self, there: socket.socket) -> None:
        """The first message of a connection; the next thing is that it is closed."""
        self._selector.unregister(there)
        descriptors: list[int] = []
        try:
            content, descriptors, _, _ = socket.recv_fds(there, _MESSAGE_BYTES, _STREAMS)
            if len(descriptors) == _STREAMS:
                self._start(there, Call.model_validate_json(content), descriptors)
                return
        except (OSError, ValueError):  # who calls like that learns that nobody answers
            traceback.print_exc()
        finally:
            for each in descriptors:
                os.close(each)
        there.close()

    def _start(self, there: socket.socket, call: Call, streams: Sequence[int]) -> None:
        pid = os.fork()
        if pid == 0:
            self._be_child(there, call, streams)
        process = os.pidfd_open(pid)
        self._running[process] = (pid, there)
        self._selector.register(process, selectors.EVENT_READ, self._ended)
        self._selector.register(there, selectors.EVENT_READ, self._left)
        with suppress(OSError):  # the caller is gone, which is seen next
            there.send(Started(pid=pid).model_dump_json().encode())

    def _ended(self, process: int) -> None:
        pid, there = self._running.pop(process)
        _, status = os.waitpid(pid, 0)
        self._selector.unregister(process)
        os.close(process)
        with suppress(OSError):
            there.send(Ended(code=os.waitstatus_to_exitcode(status)).model_dump_json().encode())
        with suppress(KeyError):
            self._selector.unregister(there)
        there.close()

    def _left(self, there: socket.socket) -> None:
        """The caller is gone: nobody waits for the process, unless it ended at the same moment."""
        for pid, caller in self._running.values():
            if caller is there:
                self._selector.unregister(there)
                end_group(pid, kill=True)

    def _be_child(self, there: socket.socket, call: Call, streams: Sequence[int]) -> None:
        """Run the program; it never returns."""
        code = 1
        try:
            die_with_parent(signal.SIGKILL)
            os.setsid()
            for number, stream in enumerate(streams, start=1):
                os.dup2(stream, number)
            # Those of the server know whether its own files can be sought. Kept here, these stay
            # open when the program wraps them.
            opened = _opened(1), _opened(2)
            sys.stdout, sys.stderr = opened
            os.chdir(call.folder)
            for descriptor in [*streams, *self._running]:
                os.close(descriptor)
            known = [each.fileobj for each in self._selector.get_map().values()]
            for connection in [there, *(each for each in known if isinstance(each, socket.socket))]:
                connection.close()
            self._selector.close()
            code = self._run(call.arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:  # noqa: BLE001 - told to whoever reads its stderr
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)


def _opened(descriptor: int) -> io.TextIOWrapper:
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
