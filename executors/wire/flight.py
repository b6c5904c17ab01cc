"""Frames over Arrow Flight, on the trainer's side: credits go up, record batches come down."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import flight

from forebay.errors import InfrastructureError
from forebay.executors.link.protocol import RoleLink
from forebay.executors.link.tokens import HEADER, bearer
from forebay.executors.wire.messages import CreditNote, FrameHead, StreamCall

_OPTIONS = [("grpc.use_local_subchannel_pool", 1)]  # nothing is shared with earlier connections
_BROKEN = (flight.FlightError, pa.ArrowException, OSError)
_LOG = logging.getLogger(__name__)


def open_stream(link: RoleLink, address: str, epoch: int) -> FlightStream:
    """Open the stream of an epoch, which the executor may reach a moment later.

    Raises:
        InfrastructureError: when nothing listens there.
    """
    call = StreamCall(epoch=epoch).model_dump_json().encode()
    try:
        with ExitStack() as opened:
            socket = link.dial(address)
            opened.callback(socket.close)
            client = flight.FlightClient(socket.flight_location, generic_options=_OPTIONS)
            opened.callback(client.close)
            headers = [(HEADER.encode(), bearer(socket.token).encode())]
            writer, reader = client.do_exchange(
                flight.FlightDescriptor.for_command(call), flight.FlightCallOptions(headers=headers)
            )
            return FlightStream(address, writer, reader, opened.pop_all())
    except _BROKEN as error:
        raise InfrastructureError(f"data executor at {address}: {error}") from error


@dataclass(eq=False)
class FlightStream:
    """One `do_exchange` call. One thread receives; grants may come from others."""

    address: str
    writer: flight.FlightStreamWriter
    reader: flight.FlightStreamReader
    connection: ExitStack
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _broken: bool = False
    _closed: bool = False

    def receive(self) -> tuple[FrameHead, pa.RecordBatch | None] | None:
        """The next frame; None when the executor closed the epoch, or `close` was called.

        Its batch is None where only positions moved.

        Raises:
            InfrastructureError: when the connection broke, or the epoch is not available.
            ValueError: when what came is not a frame.
        """
        try:
            chunk = self.reader.read_chunk()
        except StopIteration:
            self._finish()
            return None
        except _BROKEN as error:
            self._finish()
            if self._closed:
                return None
            raise InfrastructureError(f"data executor at {self.address}: {error}") from error
        return FrameHead.model_validate_json(chunk.app_metadata.to_pybytes()), chunk.data

    def grant(self, credits: int) -> None:  # noqa: A002 - the word of the protocol
        """Make room for more minibatches. A broken connection is reported by `receive`."""
        note = pa.py_buffer(CreditNote(credits=credits).model_dump_json().encode())
        with self._lock:
            if self._closed or self._broken:
                return
            try:
                self.writer.write_metadata(note)
            except _BROKEN:
                self._broken = True  # the receiving side sees the same break and reports it

    def close(self) -> None:
        """Cancel the call; `receive` then ends."""
        self._closed = True
        self.reader.cancel()

    def _finish(self) -> None:
        """Close the connection; the receiving thread does this last."""
        with self._lock:
            self._broken = True
            for part in (self.writer, self.connection):
                try:
                    part.close()
                except _BROKEN as error:
                    _LOG.debug("data executor at %s: %s", self.address, error)
