"""The data executor's socket for packed frames: sections go out as they are in Arrow's memory.

As with Flight, a stream asks for rows only when it holds a credit (late binding).
"""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from forebay.executors.data_executor.callers import Callers
from forebay.executors.wire.frames.base import Claim, FrameSource
from forebay.executors.wire.frames.format import (
    CREDIT,
    END,
    REFUSED,
    UNSENDABLE,
    FrameFormatError,
    Hello,
    pack_rows,
    pack_text,
    padded,
)
from forebay.executors.wire.frames.rows import pack_batches, schema_fingerprint, section_bytes
from forebay.executors.wire.frames.socket_bytes import bound_waits, send_parts
from forebay.executors.wire.limits import FRAME_BYTES_MAX, POLL_SECONDS
from forebay.executors.wire.messages import FrameHead
from forebay.executors.wire.sockets import listen
from forebay.mixture.queue.queue import FrameRows, QueueClosedError

# One is served at a time; the others belong to epochs that are over, and end soon.
_STREAMS_MAX = 16
_CREDITS_MAX = 1 << 20
_NOTE_BYTES = 4096
_LOG = logging.getLogger(__name__)


class PackedFrameServer:
    """Serves each epoch's frames once, to one caller, on its own socket in the job's folder.

    A caller without the token is refused before anything else is read, and no wait for a caller is
    unbounded.
    """

    def __init__(
        self,
        job_dir: Path,
        index: int,
        schema: pa.Schema,
        claim: Claim,
        bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        """Bind the socket. bytes_max: of a frame.

        Raises:
            InfrastructureError: when the job's folder cannot hold the socket.
        """
        self._socket = listen(job_dir, "data", index)
        self._callers = Callers(self._socket.path, self._socket.token, self._admit)
        self._schema = schema_fingerprint(schema)
        self._claim = claim
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._streams: set[socket.socket] = set()
        self.address = self._socket.address

    def start(self) -> None:
        """Answer in separate threads."""
        self._callers.start()

    def close(self) -> None:
        """End all streams, and stop answering."""
        self._callers.close()
        with self._lock:
            for connection in self._streams:
                with suppress(OSError):  # its caller was faster
                    connection.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _admit(self, connection: socket.socket, hello: Hello) -> str:
        """Serve a caller that has shown the token, or return why not."""
        if hello.schema != self._schema:
            return "the columns served are not those that this caller expects"
        with self._lock:
            if len(self._streams) >= _STREAMS_MAX:
                return f"{_STREAMS_MAX} streams are open already"
            self._streams.add(connection)
        arguments, name = (connection, hello.epoch), f"frames-{hello.epoch}"
        thread = threading.Thread(target=self._serve, args=arguments, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the thread that accepts callers must survive it
            with self._lock:
                self._streams.discard(connection)
            return f"no stream can be served: {error}"
        return ""

    def _serve(self, connection: socket.socket, epoch: int) -> None:
        try:
            bound_waits(connection)
            frames = self._claim(epoch)
            if frames is None:
                connection.sendall(pack_text(REFUSED, f"epoch {epoch} is not available"))
            else:
                self._send_frames(connection, frames)
        except OSError as error:
            _LOG.info("epoch %d: the caller is gone: %s", epoch, error)
        finally:
            with self._lock:
                self._streams.discard(connection)
                connection.close()

    def _send_frames(self, connection: socket.socket, frames: FrameSource) -> None:
        """Send one frame for each credit until the epoch ends or the caller is gone."""
        room = _Credits(connection)
        try:
            while room.look():
                found = frames.next(POLL_SECONDS)
                if found is not None:
                    send_parts(connection, frame_parts(*found, self._bytes_max))
                    room.left -= 1
        except QueueClosedError:
            connection.sendall(pack_text(END, ""))
        except FrameFormatError as error:
            _LOG.exception("frames cannot be sent")
            connection.sendall(pack_text(UNSENDABLE, str(error)))


def frame_parts(head: FrameHead, rows: FrameRows, bytes_max: int) -> list[bytes | pa.Buffer]:
    """A frame as parts, in their order on the wire.

    Raises:
        FrameFormatError: when it is larger than `bytes_max`, or its rows cannot be sent.
    """
    sections = pack_batches(rows.batches) if rows.batches else []
    lengths = [section_bytes(section) for section in sections]
    parts: list[bytes | pa.Buffer] = [
        pack_rows(head.model_dump_json().encode(), head.rows, lengths, bytes_max)
    ]
    for section, length in zip(sections, lengths, strict=True):
        parts += [*section, bytes(padded(length) - length)]
    return parts


class _Credits:
    """How many frames a caller has room for."""

    def __init__(self, connection: socket.socket) -> None:
        self.left = 0
        self._connection = connection
        self._begun = b""

    def look(self) -> bool:
        """Take the credits that have come, and wait for some if none is left.

        Returns:
            False when the caller is gone.
        """
        while True:
            try:
                flags = socket.MSG_DONTWAIT if self.left else 0
                came = self._connection.recv(_NOTE_BYTES, flags)
            except BlockingIOError:
                if self.left:
                    return True
                continue  # a step may take as long as it likes
            if not came:
                return False
            self._add(self._begun + came)

    def _add(self, notes: bytes) -> None:
        whole = len(notes) // CREDIT.size * CREDIT.size
        self._begun = notes[whole:]
        self.left += sum(granted for (granted,) in CREDIT.iter_unpack(notes[:whole]))
        if self.left > _CREDITS_MAX:
            raise FrameFormatError(f"{self.left} credits are more than {_CREDITS_MAX}")
