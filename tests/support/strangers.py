"""What a process without a token does at the sockets of a job in training."""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import grpc

from support.data_path import DataPath, serving
from support.projects import DAY, FIRST_DAY, ads_pipeline, history_source, write_history
from support.there import until

DRIVER_CALL = "/forebay.DataTaskService/status"
EXECUTOR_CALL = "/arrow.flight.protocol.FlightService/DoExchange"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMPTY_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
BOMB = bytes(64 << 20)  # 64 kB once it is packed
_CALL_SECONDS = 20.0
# A caller of its own that no other shares a connection with.
_APART = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]


@contextmanager
def serving_history(root: Path) -> Iterator[DataPath]:
    write_history(root / "data/history", FIRST_DAY - DAY, 2_000, files=1)
    pipeline = ads_pipeline()
    del pipeline["dataset"]["streams"]["clicks"]
    made = DataPath.of(root, pipeline, {"history": history_source()})
    made.plan("2026-03-01", "2026-03-01")
    with serving(made, executors=1):
        assert until((made.job_dir / "endpoints/data-0").exists, 60)
        yield made


def sockets_of(job_dir: Path, role: str = "") -> list[Path]:
    found = sorted((job_dir / "sockets").glob(f"{role}*"))
    return [path for path in found if path.is_socket()]


def call_at(path: Path) -> str:
    return DRIVER_CALL if path.name.startswith("driver") else EXECUTOR_CALL


def token_of(path: Path) -> str:
    return path.with_name(f"{path.name}.token").read_text()


@contextmanager
def short(path: Path) -> Iterator[str]:
    """A path to a socket that is short enough, however deep its folder is."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


@contextmanager
def channel(path: Path) -> Iterator[grpc.Channel]:
    with short(path) as name, grpc.insecure_channel(f"unix:{name}", _APART) as found:
        yield found


@contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    """A bare connection to a socket; others that wait to be accepted there come first."""
    with socket.socket(socket.AF_UNIX) as client, short(path) as name:
        longest = struct.pack("@ll", int(_CALL_SECONDS), 0)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, longest)
        client.connect(name)
        client.settimeout(_CALL_SECONDS)
        yield client


def answer(
    path: Path, token: str | None = None, message: bytes = b"{}", *, packed: bool = False
) -> grpc.StatusCode:
    shown = [("authorization", f"Bearer {token}")] if token is not None else []
    how = grpc.Compression.Gzip if packed else None
    with channel(path) as opened:
        try:
            opened.unary_unary(call_at(path))(
                message, timeout=_CALL_SECONDS, metadata=shown, compression=how
            )
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


@contextmanager
def silent_calls(path: Path, count: int) -> Iterator[list[grpc.Future]]:
    """Calls that never send their message, each on a connection of its own."""
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait(_CALL_SECONDS)
        yield from ()

    with ExitStack() as opened:
        calls = [
            opened.enter_context(channel(path))
            .stream_unary(call_at(path))
            .future(nothing(), timeout=_CALL_SECONDS)
            for _ in range(count)
        ]
        try:
            yield calls
        finally:
            over.set()


def codes(calls: list[grpc.Future]) -> Counter[grpc.StatusCode]:
    """How calls ended; those that did not within their deadline say so themselves."""
    return Counter(call.code() for call in calls if call.exception() is not None)


@dataclass
class Crowd:
    """Strangers at every socket of a job, for as long as the block lasts."""

    job_dir: Path
    answers: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        acts = (self._silent, self._half_open, self._garbage, self._bombs, self._tokens)
        self._threads = [threading.Thread(target=self._on, args=(act,)) for act in acts]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self._threads)

    def _on(self, act: Callable[[Path], None]) -> None:
        while not self._over.is_set():
            for path in sockets_of(self.job_dir):
                try:
                    with suppress(FileNotFoundError, ConnectionError):  # its process was killed
                        act(path)
                except Exception as error:  # noqa: BLE001 - a test looks at them
                    self.problems.append(f"{act.__name__} at {path.name}: {error!r}")
            self._over.wait(0.2)

    def _count(self, act: str, path: Path, what: object, number: int = 1) -> None:
        name = path.name.split("-")[0]
        with self._lock:
            self.answers[f"{act} at {name}: {what}"] += number

    def _silent(self, path: Path) -> None:
        with silent_calls(path, 20) as calls:
            for code, number in codes(calls).items():
                self._count("silent", path, code.name, number)

    def _half_open(self, path: Path) -> None:
        with ExitStack() as opened:
            for index in range(40):
                client = opened.enter_context(connected(path))
                if index % 2:
                    client.sendall(PREFACE[: index % len(PREFACE)])
            self._over.wait(1.0)
            self._count("half-open", path, "held")

    def _garbage(self, path: Path) -> None:
        seed = random.randrange(2**32)
        bytes_of = random.Random(seed)
        beginnings = (b"", PREFACE, PREFACE + EMPTY_SETTINGS)
        with connected(path) as client:
            client.sendall(bytes_of.choice(beginnings) + bytes_of.randbytes(1 << 14))
            client.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                while client.recv(1 << 16):
                    pass
            self._count("garbage", path, "closed")

    def _bombs(self, path: Path) -> None:
        if path.name.startswith("driver"):
            self._count("bomb", path, answer(path, None, BOMB, packed=True).name)
            self._over.wait(0.3)

    def _tokens(self, path: Path) -> None:
        others = [token_of(each) for each in sockets_of(self.job_dir) if each != path]
        for token in (*others, "a-token-that-nobody-has-made", ""):
            self._count("token", path, answer(path, token).name)
