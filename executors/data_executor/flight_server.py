"""The data executor's socket: Arrow Flight `do_exchange`, record batches for credits.

The handler reads a credit only when it has none, and asks for rows only when it has one: late
binding, without a second thread for each stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyarrow import flight
from pydantic import ValidationError

from forebay.executors.link.protocol import RoleLink
from forebay.executors.link.tokens import HEADER, is_allowed
from forebay.executors.wire.messages import CreditNote, FrameHead, StreamCall
from forebay.mixture.queue.queue import FrameRows, QueueClosedError

# How soon a stream without frames notices that its caller is gone.
POLL_SECONDS = 0.1

# The next minibatch of an epoch; None when none comes in so many seconds. Raises QueueClosedError
# when the epoch ended.
NextFrame = Callable[[float], tuple[FrameHead, FrameRows] | None]
# Waits for an epoch and hands out its frames; None when they are not available.
Claim = Callable[[int], NextFrame | None]


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]  # pyarrow has no types
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def start_call(self, info: object, headers: Mapping[str, Sequence[str]]) -> None:  # noqa: ARG002
        shown = headers.get(HEADER, [])
        if len(shown) != 1 or not is_allowed(shown[0], self._token):
            raise flight.FlightUnauthenticatedError("this socket requires the token of its process")


class FlightFrameServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Serves each epoch's frames once, to one caller, on its own socket.

    Arrow's server has no bounds for messages and connections, and it reads the message of some
    calls before it checks their token: what keeps strangers out is the socket's folder.
    """

    def __init__(self, link: RoleLink, schema: pa.Schema, claim: Claim) -> None:
        """Bind the socket. schema: of the rows that are served.

        Raises:
            InfrastructureError: when nobody could listen there.
        """
        self._socket = link.listen()
        checks = {"token": _TokenCheck(self._socket.token)}
        super().__init__(self._socket.flight_location, middleware=checks)
        self._schema = schema
        self._claim = claim
        self.address = self._socket.address
        # It serves from the start. `serve` would wait too, but take SIGINT away from Python: Ctrl-C
        # in a process that is more than this server would only end this, once no stream is open.
        self._thread = threading.Thread(target=self.wait, name="flight", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop answering. Flight waits for open streams; this call does not wait for Flight."""
        threading.Thread(target=self._end, name="flight-end", daemon=True).start()

    def _end(self) -> None:
        self.shutdown()
        self._socket.close()

    def do_exchange(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.MetadataRecordBatchWriter,
    ) -> None:
        try:
            call = StreamCall.model_validate_json(descriptor.command or b"")
        except ValidationError as error:
            raise flight.FlightServerError(f"not a stream call: {error}") from None
        next_frame = self._claim(call.epoch)
        if next_frame is None:
            raise flight.FlightServerError(f"epoch {call.epoch} is not available")
        writer.begin(self._schema)
        credit = 0
        while True:
            if not credit:
                try:
                    note = reader.read_chunk().app_metadata.to_pybytes()
                    credit += CreditNote.model_validate_json(note).credits
                except (StopIteration, flight.FlightError, pa.ArrowException):
                    return  # the caller closed the stream, or died
                continue
            try:
                found = next_frame(POLL_SECONDS)
            except QueueClosedError:
                return
            if found is not None:
                head, rows = found
                self._send(writer, head, rows)
                credit -= 1 if head.progress else 0
            elif context.is_cancelled():
                return

    @staticmethod
    def _send(writer: flight.MetadataRecordBatchWriter, head: FrameHead, rows: FrameRows) -> None:
        note = pa.py_buffer(head.model_dump_json().encode())
        if not rows.batches:
            writer.write_metadata(note)
        elif len(rows.batches) == 1:
            writer.write_with_metadata(rows.batches[0], note)
        else:
            writer.write_with_metadata(pa.concat_batches(rows.batches), note)
