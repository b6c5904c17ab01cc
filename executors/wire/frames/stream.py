"""Frames over a Unix socket, packed: rows come in as arrays at aligned addresses."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa

from forebay.errors import InfrastructureError
from forebay.executors.wire.frames.base import Received
from forebay.executors.wire.frames.format import (
    CREDIT,
    END,
    HEADER_BYTES,
    REFUSED,
    UNSENDABLE,
    FrameFormatError,
    Header,
    Hello,
    head_of,
    pack_hello,
    read_header,
    sections_of,
)
from forebay.executors.wire.frames.memory import FrameMemory
from forebay.executors.wire.frames.rows import read_batch, schema_fingerprint
from forebay.executors.wire.frames.socket_bytes import (
    bound_waits,
    connect_within,
    receive_into,
)
from forebay.executors.wire.limits import CONNECT_SECONDS, FRAME_BYTES_MAX
from forebay.executors.wire.messages import FrameHead
from forebay.executors.wire.sockets import JobSocket, dial


class PackedTransport:
    """Opens streams of packed frames from a job's data executors."""

    def __init__(self, job_dir: Path, schema: pa.Schema, blocks_kept: int) -> None:
        """The executors are those of the job in this folder, and serve rows of this schema.

        blocks_kept: how many blocks of memory are kept for future frames.
        """
        self._job_dir = job_dir
        self._schema = schema
        self._memory = FrameMemory(blocks_kept)

    def connect(self, address: str, epoch: int) -> PackedStream:
        """Open the stream of an epoch on a new connection; the token is sent first."""
        try:
            with closing(dial(self._job_dir, address)) as target:
                connection = self._called(target, epoch)
        except OSError as error:
            raise InfrastructureError(f"data executor at {address}: {error}") from error
        return PackedStream(address, connection, self._schema, self._memory)

    def _called(self, target: JobSocket, epoch: int) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connect_within(connection, target.path, CONNECT_SECONDS)
            hello = Hello(epoch, schema_fingerprint(self._schema))
            connection.sendall(pack_hello(target.token, hello))
        except BaseException:
            connection.close()
            raise
        return connection


class PackedStream:
    """One connection."""

    def __init__(
        self,
        address: str,
        connection: socket.socket,
        schema: pa.Schema,
        memory: FrameMemory,
        bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        """Take over the connection. bytes_max: the largest frame that is received."""
        bound_waits(connection)
        self._who = f"data executor at {address}"
        self._connection = connection
        self._schema = schema
        self._memory = memory
        self._bytes_max = bytes_max
        self._granting, self._ending = threading.Lock(), threading.Lock()
        self._over = False  # nothing more is granted
        self._closed = False  # by this side
        self._receiving = False
        self._gone = False

    def receive(self) -> Received | None:
        """The next frame, in its own memory."""
        with self._ending:
            if self._closed:
                return None
            self._receiving = True
        received = None
        try:
            received = self._next()
        except FrameFormatError as error:
            raise FrameFormatError(f"{self._who}: {error}") from error
        except OSError as error:
            if not self._closed:
                raise InfrastructureError(f"{self._who}: {error}") from error
        finally:
            with self._ending:
                self._receiving = False
                over = self._closed or received is None
            if over:
                self._finish()
        return received

    def grant(self, credits: int) -> None:  # noqa: A002 - the word of the protocol
        """Make room for more minibatches."""
        with self._granting:
            if self._closed or self._over:
                return
            try:
                self._connection.sendall(CREDIT.pack(credits))
            except OSError:
                self._over = True  # the receiving side sees the same break and reports it

    def close(self) -> None:
        """End the connection; `receive` then ends, and so does a grant under way."""
        with self._ending:
            self._closed = True
            is_idle = not self._receiving
            self._shut()
        if is_idle:
            self._finish()

    def _shut(self) -> None:
        if not self._gone:
            with suppress(OSError):  # the other side was faster
                self._connection.shutdown(socket.SHUT_RDWR)

    def _finish(self) -> None:
        """Close the connection: no thread is receiving."""
        with self._ending:
            self._shut()
        with self._granting:  # one that is under way ends now
            self._over = True
        with self._ending:
            self._gone = True
            self._connection.close()

    def _next(self) -> Received | None:
        begun = bytearray(HEADER_BYTES)
        receive_into(self._connection, memoryview(begun), patient=True)
        header = read_header(bytes(begun), self._bytes_max)
        if header.kind == END:
            return None
        buffer = self._memory.take(header.payload_bytes)
        payload = memoryview(buffer)
        receive_into(self._connection, payload)
        if header.kind == REFUSED:
            raise InfrastructureError(f"{self._who}: {_text(header, payload)}")
        if header.kind == UNSENDABLE:
            raise FrameFormatError(_text(header, payload))
        return self._frame(header, buffer, payload)

    def _frame(self, header: Header, buffer: pa.Buffer, payload: memoryview) -> Received:
        head = FrameHead.model_validate_json(head_of(header, payload))
        if head.rows != header.rows:
            raise FrameFormatError(f"a frame of {header.rows} rows has a head for {head.rows}")
        places = sections_of(header, payload)
        if not places and not header.rows:
            return Received(head, None)
        sections = [buffer.slice(offset, length) for offset, length in places]
        return Received(head, read_batch(self._schema, header.rows, sections))


def _text(header: Header, payload: memoryview) -> str:
    return head_of(header, payload).decode(errors="replace")
