"""Callers of a data executor's socket for packed frames, who say whatever they like."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from forebay.executors.wire.frames.format import (
    HEADER_BYTES,
    Hello,
    head_of,
    pack_hello,
    read_header,
)
from support.strangers import connected


def hello(token: str, epoch: int = 0, schema: bytes = bytes(32)) -> bytes:
    """What a trainer says first."""
    return pack_hello(token, Hello(epoch, schema))


def answer_to(path: Path, said: bytes) -> str:
    """What the socket answers in words; empty when it ends the connection without any."""
    with connected(path) as client:
        with suppress(ConnectionError):  # it has read enough
            client.sendall(said)
        return words_of(client)


def words_of(client: socket.socket) -> str:
    """All that is answered until the connection ends."""
    answer = bytearray()
    with suppress(ConnectionError):
        while came := client.recv(1 << 16):
            answer += came
    if not answer:
        return ""
    header = read_header(bytes(answer[:HEADER_BYTES]), 1 << 16)
    return head_of(header, memoryview(answer)[HEADER_BYTES:]).decode()
