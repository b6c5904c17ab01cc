"""The server of packed frames, with callers who show the token and then break the rules."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.served_rows import SCHEMA, batch_of_lists, head_of
from support.strangers import answer_to, connected, hello, sockets_of, token_of, until, words_of

from forebay.executors.data_executor.packed_server import PackedFrameServer
from forebay.executors.wire.frames.format import CREDIT, HEADER_BYTES
from forebay.executors.wire.frames.rows import schema_fingerprint
from forebay.executors.wire.messages import FrameHead
from forebay.mixture.queue.queue import FrameRows, QueueClosedError

FINGERPRINT = schema_fingerprint(SCHEMA)


class Endless:
    """Minibatches of one size without an end."""

    def __init__(self, rows: int = 10) -> None:
        self.rows = FrameRows("batch", 0, [(0, rows)], [batch_of_lists(rows)], {})
        self.sent = 0
        self.closed = threading.Event()

    def next(self, timeout_seconds: float) -> tuple[FrameHead, FrameRows] | None:
        del timeout_seconds
        if self.closed.is_set():
            raise QueueClosedError
        self.sent += 1
        return head_of(self.rows, 1, self.sent - 1), self.rows


@pytest.fixture
def frames() -> Endless:
    return Endless()


@pytest.fixture
def path(tmp_path: Path, frames: Endless) -> Iterator[Path]:
    """The socket of a server whose every epoch from 1 on is that one, with frames of 4 KiB."""
    server = PackedFrameServer(
        tmp_path, 0, SCHEMA, lambda epoch: frames if epoch > 0 else None, 4096
    )
    server.start()
    (found,) = sockets_of(tmp_path)
    yield found
    frames.closed.set()
    server.close()


def test_a_caller_that_expects_other_columns_is_told_so(path: Path) -> None:
    said = hello(token_of(path), 1, bytes(32))
    assert answer_to(path, said) == "the columns served are not those that this caller expects"


def test_more_credits_than_anybody_has_room_for_are_refused(path: Path, frames: Endless) -> None:
    said = hello(token_of(path), 1, FINGERPRINT) + CREDIT.pack(2**32 - 1)
    assert answer_to(path, said) == "4294967295 credits are more than 1048576"
    assert frames.sent == 0


def test_half_of_a_credit_is_none(path: Path, frames: Endless) -> None:
    with connected(path) as client:
        client.sendall(hello(token_of(path), 1, FINGERPRINT) + CREDIT.pack(2)[:3])
        assert not until(lambda: frames.sent > 0, 0.3)
        client.sendall(CREDIT.pack(2)[3:])
        assert until(lambda: frames.sent == 2)


def test_a_minibatch_that_is_too_large_says_the_way_out(path: Path, frames: Endless) -> None:
    frames.rows = Endless(1000).rows
    said = hello(token_of(path), 1, FINGERPRINT) + CREDIT.pack(1)
    assert "lower train.minibatch_rows" in answer_to(path, said)


def test_streams_have_a_bound_and_make_room_again(path: Path) -> None:
    said = hello(token_of(path), 1, FINGERPRINT)
    with ExitStack() as opened:
        for _ in range(16):
            opened.enter_context(connected(path)).sendall(said)
        assert until(lambda: answer_to(path, hello(token_of(path))) != "")
        assert answer_to(path, said) == "16 streams are open already"
    assert until(lambda: answer_to(path, hello(token_of(path), 0, FINGERPRINT)).startswith("epoch"))


def test_a_server_that_ends_ends_its_streams(tmp_path: Path) -> None:
    frames = Endless()
    server = PackedFrameServer(tmp_path, 0, SCHEMA, lambda _: frames)
    server.start()
    (path,) = sockets_of(tmp_path)
    with connected(path) as client, connected(path) as silent:
        client.sendall(hello(token_of(path), 1, FINGERPRINT) + CREDIT.pack(1))
        assert len(client.recv(HEADER_BYTES)) == HEADER_BYTES
        server.close()
        assert until(lambda: client.recv(1 << 16) == b"")
        assert words_of(silent) == ""
    with pytest.raises(ConnectionRefusedError), connected(path):
        pass


def test_a_caller_may_say_all_at_once(path: Path) -> None:
    """Credits behind the hello are not taken for a part of it."""
    with connected(path) as client:
        client.sendall(hello(token_of(path), 1, FINGERPRINT) + CREDIT.pack(3))
        magic = client.recv(8)
    assert struct.unpack("<8s", magic) == (b"\x8eFBFRAME",)


def test_without_a_thread_the_caller_is_told_and_the_next_one_heard(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    said = hello(token_of(path), 0, FINGERPRINT)
    with monkeypatch.context() as changed:
        changed.setattr(threading.Thread, "start", no_thread)
        assert answer_to(path, said) == "no stream can be served: can't start new thread"
    assert answer_to(path, said) == "epoch 0 is not available"
