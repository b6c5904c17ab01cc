"""Control calls: grpcio with JSON messages, the driver's token on each, a deadline on each.

Every call may be repeated: a caller that got no answer sends the same message again, to
whichever driver there then is. A call without the token is refused before a
byte of its message is read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import grpc
from pydantic import ValidationError

from forebay.config.specs.jobs import JobSpec
from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.link.protocol import Address, RoleLink
from forebay.executors.link.tokens import HEADER, bearer, is_allowed
from forebay.system.liveness import waiting
from forebay.system.message import Message
from forebay.system.output.error_report import ErrorReport

Options = list[tuple[str, int]]

# The largest message is `open`: two positions of about 250 bytes for each task that was begun. This
# is a million tasks.
MESSAGE_BYTES_MAX = 512 << 20
# Connections beside those of waiting callers: each role of a job has one.
_SPARE_CONNECTIONS = 64
# A caller has at most a few calls under way: one for each of its threads.
_CALLS_MAX = 16
_FIRST_BYTES_SECONDS = 5
_IDLE_SECONDS = 60
_IDENTITY_ALONE = 1 << 0

CLIENT_OPTIONS: Options = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # Another process may listen at the next address: nothing is shared with earlier channels.
    ("grpc.use_local_subchannel_pool", 1),
]


def server_options(threads: int) -> Options:
    """Options of a gRPC server in which up to `threads` calls wait at the same time.

    Nothing is decompressed: otherwise a message of a few kilobytes could grow to any size before
    its size is checked. A connection that sends nothing is closed.
    """
    return [
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_ALONE),
        ("grpc.per_message_decompression", 0),
        ("grpc.max_allowed_incoming_connections", threads + _SPARE_CONNECTIONS),
        ("grpc.max_concurrent_streams", _CALLS_MAX),
        ("grpc.server_handshake_timeout_ms", _FIRST_BYTES_SECONDS * 1000),
        ("grpc.max_connection_idle_ms", _IDLE_SECONDS * 1000),
    ]


SERVICE = "forebay.DataTaskService"
# A driver that is restarted answers again well within this many heartbeat timeouts.
PATIENCE_TIMEOUTS = 6
_MESSAGE_LONGEST = 2000  # gRPC carries error details in a header of at most 8 kB
_PAUSE_FIRST, _PAUSE_LONGEST = 0.02, 0.5
_RETRIED = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)

Reply = TypeVar("Reply", bound=Message)
Handler = Callable[[Any, grpc.ServicerContext], Message]
Methods = Mapping[str, tuple[type[Message], Handler]]


class _TokenCheck(grpc.ServerInterceptor):
    """Refuses every call without the server's token.

    The refusal takes a stream of messages and reads none: a handler that takes one message would
    block a thread until the caller has sent it.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._refusal: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(
            self._refuse
        )

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:  # noqa: ANN401 - gRPC's own signature
        shown = dict(handler_call_details.invocation_metadata).get(HEADER)
        if is_allowed(shown, self._token):
            return continuation(handler_call_details)
        return self._refusal

    @staticmethod
    def _refuse(_messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.abort(
            grpc.StatusCode.UNAUTHENTICATED, "this socket requires the token of its process"
        )


class RpcServer:
    def __init__(self, link: RoleLink, methods: Methods, threads: int) -> None:
        """Bind; `threads` bounds the calls that wait at the same time.

        Raises:
            InfrastructureError: when nobody could listen there.
        """
        self._socket = link.listen()
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="rpc"),
            interceptors=[_TokenCheck(self._socket.token)],
            options=server_options(threads),
        )
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(_served(kind, handler))
            for name, (kind, handler) in methods.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        self._server.add_insecure_port(self._socket.grpc_target)
        self.address = self._socket.address

    def start(self) -> None:
        self._server.start()

    def stop(self, grace_seconds: float = 0.5) -> None:
        self._server.stop(grace_seconds).wait()
        self._socket.close()


def _served(
    kind: type[Message], handler: Handler
) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    def call(message: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return handler(kind.model_validate_json(message), context).model_dump_json().encode()
        except ValidationError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a {kind.__name__}: {error}"[:500])
        except ForebayError as error:
            shown = ErrorReport.of(error)
            short = shown.model_copy(update={"message": shown.message[:_MESSAGE_LONGEST]})
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, short.model_dump_json())

    return call


class _ChannelClosedError(Exception):
    """Another thread's call failed and closed the channel that this one was about to use."""


def patience_seconds(job: JobSpec) -> float:
    """How long a role of a job keeps retrying while no driver answers.

    In this time, a driver that hangs is ended and restarted.
    """
    failover = job.failover
    hung = failover.progress_deadlines.driver
    return (hung + failover.heartbeat_timeout * PATIENCE_TIMEOUTS).total_seconds()


class _Connection:
    """A channel to one driver, with the token that each call shows."""

    def __init__(self, socket: Address) -> None:
        self._socket = socket
        self._metadata = ((HEADER, bearer(socket.token)),)
        self._channel = grpc.insecure_channel(socket.grpc_target, CLIENT_OPTIONS)

    def send(self, method: str, message: bytes, timeout: float) -> bytes:
        try:
            call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(
                f"/{SERVICE}/{method}"
            )
            return call(message, timeout=timeout, metadata=self._metadata)
        except ValueError as error:  # what gRPC raises for a closed channel
            raise _ChannelClosedError from error

    def close(self) -> None:
        self._channel.close()
        self._socket.close()


class DriverClient:
    """Calls the driver of a job, wherever it now listens."""

    def __init__(self, link: RoleLink, patience_seconds: float) -> None:
        """`patience_seconds` bounds how long a call is repeated while no driver answers."""
        self._link = link
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._connection: _Connection | None = None

    def call(
        self, method: str, request: Message, reply: type[Reply], timeout: float = 5.0
    ) -> Reply:
        """Send until there is an answer.

        Raises:
            ForebayError: the driver's own refusal, in its class.
            InfrastructureError: when no driver answered within the patience, or `close` was called.
        """
        message = request.model_dump_json().encode()
        left, pause = self._patience, _PAUSE_FIRST
        trouble = "no endpoint yet"
        while True:
            if self._closed.is_set():
                trouble = "this client is closed"
                break
            began = time.monotonic()
            try:
                connection = self._connected()
                with waiting():  # it has a deadline, and the driver is watched itself
                    answer = connection.send(method, message, timeout)
                return reply.model_validate_json(answer)
            except grpc.RpcError as error:
                trouble = _retried_or_raised(method, error)
                self._forget(connection)
                if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.CANCELLED:
                    # By another thread, whose call failed. That this one was still waiting says
                    # nothing of the driver: both processes may have been stopped.
                    began = time.monotonic()
            except _ChannelClosedError:
                trouble = "another call lost the driver"
                self._forget(connection)
            except OSError as error:
                trouble = f"no driver is known: {error}"
            except ValidationError as error:
                trouble = f"its answer cannot be understood: {error}"
            # Anything longer means that this process was stopped; no driver could answer it then.
            left -= min(time.monotonic() - began, timeout) + pause
            if left < 0 or self._closed.wait(pause):
                break
            pause = min(pause * 2, _PAUSE_LONGEST)
        raise InfrastructureError(f"the driver did not answer {method}: {trouble}")

    def close(self) -> None:
        """Give up the call under way and refuse further ones."""
        self._closed.set()
        with self._lock:
            connection = self._connection
        if connection is not None:
            self._forget(connection)

    def _connected(self) -> _Connection:
        with self._lock:
            if self._connection is None:
                self._connection = _Connection(self._link.driver())
            return self._connection

    def _forget(self, connection: _Connection) -> None:
        """Close a connection; a newer one, with which another thread found the driver, is kept."""
        with self._lock:
            if self._connection is connection:
                self._connection = None
        connection.close()


def _retried_or_raised(method: str, error: grpc.RpcError) -> str:
    """The text of an error that is worth a retry; raises the others."""
    call = error if isinstance(error, grpc.Call) else None
    code = call.code() if call else None
    details = (call.details() if call else None) or str(error)
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        raise ErrorReport.model_validate_json(details).exception() from None
    if code is None or code not in _RETRIED:
        raise InfrastructureError(f"the driver refused {method}: {code}: {details}") from error
    return f"{code.name}: {details}"
