"""A stream of packed frames whose other side breaks the rules."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.served_rows import SCHEMA, batch_of_lists, head_of
from support.strangers import until

from forebay.errors import InfrastructureError
from forebay.executors.data_executor.packed_server import frame_parts
from forebay.executors.wire.frames.format import (
    END,
    REFUSED,
    UNSENDABLE,
    FrameFormatError,
    pack_text,
)
from forebay.executors.wire.frames.memory import FrameMemory
from forebay.executors.wire.frames.socket_bytes import bound_waits, connect_within, send_parts
from forebay.executors.wire.frames.stream import PackedStream, PackedTransport
from forebay.executors.wire.sockets import JobSocket, listen
from forebay.mixture.queue.queue import FrameRows

Pair = tuple[PackedStream, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A stream that waits 0.3 s at most in the middle of a frame, and the other side of it."""
    here, there = socket.socketpair()
    stream = PackedStream("unix:data-0.0", there, SCHEMA, FrameMemory(2))
    bound_waits(there, 0.3)
    yield stream, here
    stream.close()
    here.close()


def sound(rows: int = 10) -> bytes:
    frame = FrameRows("batch", 0, [(0, rows)], [batch_of_lists(rows)], {})
    return b"".join(map(bytes, frame_parts(head_of(frame, 1, 0), frame, 1 << 30)))


def test_the_first_byte_may_take_as_long_as_it_likes(pair: Pair) -> None:
    stream, other = pair
    timer = threading.Timer(1.0, other.sendall, [sound()])
    timer.start()
    assert stream.receive() is not None
    timer.join()


@pytest.mark.parametrize("sent", [1, 63, 64, 65, 200])
def test_a_frame_that_stops_in_the_middle_is_given_up(pair: Pair, sent: int) -> None:
    stream, other = pair
    other.sendall(sound()[:sent])
    with pytest.raises(InfrastructureError, match=r"data-0\.0: nothing came after byte"):
        stream.receive()


def test_a_frame_may_come_in_parts(pair: Pair) -> None:
    stream, other = pair
    data = sound(100)

    def send() -> None:
        for place in range(0, len(data), 999):
            other.sendall(data[place : place + 999])

    thread = threading.Thread(target=send)
    thread.start()
    received = stream.receive()
    thread.join()
    assert received is not None
    assert received.batch == batch_of_lists(100)


def test_words_of_the_other_side_are_passed_on(pair: Pair) -> None:
    stream, other = pair
    other.sendall(pack_text(REFUSED, "epoch 3 is not available"))
    with pytest.raises(InfrastructureError, match=r"data-0\.0: epoch 3 is not available"):
        stream.receive()


def test_rows_that_cannot_travel_are_no_broken_connection(pair: Pair) -> None:
    """Another executor could not send them either."""
    stream, other = pair
    other.sendall(pack_text(UNSENDABLE, "a minibatch of 9 rows has too many bytes"))
    with pytest.raises(FrameFormatError, match=r"data-0\.0: a minibatch of 9 rows"):
        stream.receive()


def test_the_end_of_an_epoch_is_no_error(pair: Pair) -> None:
    stream, other = pair
    other.sendall(pack_text(END, ""))
    assert stream.receive() is None


def test_a_frame_says_how_many_rows_it_has(pair: Pair) -> None:
    stream, other = pair
    frame = FrameRows("batch", 0, [(0, 9)], [batch_of_lists(10)], {})
    other.sendall(b"".join(map(bytes, frame_parts(head_of(frame, 1, 0), frame, 1 << 30))))
    with pytest.raises(FrameFormatError, match="column 'row_id' has 80 bytes instead of 72"):
        stream.receive()


def test_a_grant_that_nobody_reads_ends_with_the_stream(pair: Pair) -> None:
    stream, other = pair
    del other
    done = threading.Event()

    def grant() -> None:
        for _ in range(100_000):
            stream.grant(1)
        done.set()

    threading.Thread(target=grant, daemon=True).start()
    assert done.wait(20), "it waits no longer than it may"


def test_nobody_is_waited_for_who_does_not_accept(tmp_path: Path) -> None:
    target = listen(tmp_path, "data", 0)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(target.path)
        transport = PackedTransport(tmp_path, SCHEMA, 1)
        with pytest.raises(InfrastructureError, match=target.address):
            transport.connect(target.address, 1)  # it does not listen
    target.close()


@contextmanager
def busy(folder: Path) -> Iterator[tuple[JobSocket, socket.socket]]:
    """A socket where one caller waits already, which is all that it has room for."""
    target = listen(folder, "data", 0)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
        listener.bind(target.path)
        listener.listen(0)
        other.connect(target.path)
        yield target, listener
    target.close()


def test_others_who_wait_to_be_accepted_are_no_refusal(tmp_path: Path) -> None:
    with busy(tmp_path) as (target, listener):
        accepted: list[socket.socket] = []

        def accept() -> None:
            accepted.extend(listener.accept()[0] for _ in range(2))

        timer = threading.Timer(0.5, accept)
        timer.start()
        PackedTransport(tmp_path, SCHEMA, 1).connect(target.address, 1).close()
        timer.join()
        for each in accepted:
            each.close()


def test_a_call_that_is_never_taken_ends(tmp_path: Path) -> None:
    refused = pytest.raises(OSError, match=r"accepted no connection for 0\.3 s")
    with busy(tmp_path) as (target, _), socket.socket(socket.AF_UNIX) as late, refused:
        connect_within(late, target.path, 0.3)


def test_many_parts_are_sent_in_order() -> None:
    here, there = socket.socketpair()
    with here, there:
        parts = [bytes([number % 251]) * (number % 7) for number in range(5000)]
        wanted = b"".join(parts)
        thread = threading.Thread(target=send_parts, args=(here, parts))
        thread.start()
        found = bytearray()
        while len(found) < len(wanted):
            found += there.recv(1 << 16)
        thread.join()
    assert bytes(found) == wanted


def test_who_takes_nothing_is_given_up() -> None:
    here, there = socket.socketpair()
    with here, there:
        bound_waits(here, 0.2)
        with pytest.raises(OSError, match="the other side read nothing for too long"):
            send_parts(here, [bytes(64 << 20)])
        assert until(lambda: bool(there.recv(1 << 16)))
