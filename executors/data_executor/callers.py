"""Connections that have not authenticated yet: few, not for long, and none delays another.

One thread watches all of them. A connection that shows the token is passed on.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from forebay.executors.wire.frames.format import (
    HELLO_BYTES,
    REFUSED,
    Hello,
    hello_problem,
    pack_text,
    read_hello,
)
from forebay.executors.wire.limits import CONNECT_SECONDS

# If this many are silent, the oldest is dropped: a caller with a token shows it at once.
_WAITING_MAX = 64
_PAUSE_SECONDS = 0.1  # after an error that is not the caller's, such as no free descriptor
_NO_TOKEN = "this socket requires the token of its process"  # noqa: S105 - the word is the refusal
_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class _Caller:
    connection: socket.socket
    until: float
    selector: selectors.BaseSelector
    begun: bytes = b""


class Callers:
    """Accepts connections at a path, and passes on those that show the token."""

    def __init__(self, path: str, token: str, admit: Callable[[socket.socket, Hello], str]) -> None:
        """Bind; `admit` takes a connection over, or returns why not. It must not block.

        Raises:
            OSError: when nothing can be bound there.
        """
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(path)
            self._listener.listen(_WAITING_MAX)
        except BaseException:
            self._listener.close()
            raise
        self._listener.settimeout(0)
        self._token = token
        self._admit = admit
        self._callers: dict[int, _Caller] = {}  # by descriptor, the oldest first
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="callers", daemon=True)

    def start(self) -> None:
        """Accept in a separate thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop accepting; callers that were not passed on are closed."""
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        if self._thread.is_alive():
            self._thread.join(CONNECT_SECONDS)
        self._listener.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._closed.is_set():
                for key, _ in selector.select(self._patience()):
                    if key.fileobj is self._listener:
                        self._accept(selector)
                    elif (caller := self._callers.get(key.fd)) is not None:
                        self._listen_to(caller)
                self._drop_late()
            for caller in list(self._callers.values()):
                self._drop(caller)

    def _patience(self) -> float | None:
        oldest = next(iter(self._callers.values()), None)
        return None if oldest is None else max(0.0, oldest.until - time.monotonic())

    def _accept(self, selector: selectors.BaseSelector) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if not self._closed.wait(_PAUSE_SECONDS):
                _LOG.warning("a connection cannot be accepted: %s", error)
            return
        if len(self._callers) >= _WAITING_MAX:
            self._drop(next(iter(self._callers.values())))
        connection.settimeout(0)
        until = time.monotonic() + CONNECT_SECONDS
        self._callers[connection.fileno()] = _Caller(connection, until, selector)
        selector.register(connection, selectors.EVENT_READ)

    def _listen_to(self, caller: _Caller) -> None:
        """Take what a caller says; nothing is read beyond its hello."""
        try:
            came = caller.connection.recv(HELLO_BYTES - len(caller.begun))
        except BlockingIOError:
            return
        except OSError:
            came = b""
        caller.begun += came
        problem = hello_problem(caller.begun)
        if not came:
            self._drop(caller)
        elif problem:
            self._refuse(caller, problem)
        elif len(caller.begun) == HELLO_BYTES:
            self._hand_on(caller)

    def _hand_on(self, caller: _Caller) -> None:
        hello = read_hello(caller.begun, self._token)
        if hello is None:
            self._refuse(caller, _NO_TOKEN)
            return
        self._forget(caller)
        problem = self._admit(caller.connection, hello)
        if problem:
            self._refuse(caller, problem)

    def _refuse(self, caller: _Caller, problem: str) -> None:
        with suppress(OSError):  # it is gone, or does not read
            caller.connection.send(pack_text(REFUSED, problem))
        self._drop(caller)

    def _drop_late(self) -> None:
        now = time.monotonic()
        for caller in list(self._callers.values()):
            if caller.until > now:
                return
            self._drop(caller)

    def _drop(self, caller: _Caller) -> None:
        self._forget(caller)
        caller.connection.close()

    def _forget(self, caller: _Caller) -> None:
        if self._callers.pop(caller.connection.fileno(), None) is not None:
            caller.selector.unregister(caller.connection)
