"""Control calls: grpcio with JSON messages, the job's token on each, a deadline on each.

Every call may be repeated: a caller that got no answer sends the same message again, to
whichever driver `endpoints/driver.json` then names.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import grpc
from pydantic import ValidationError

from forebay.config.jobs import JobSpec
from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.wire.messages import Endpoint
from forebay.executors.wire.tokens import HEADER, bearer, is_allowed
from forebay.system.activities import waiting
from forebay.system.error_report import ErrorReport
from forebay.system.message import Message

SERVICE = "forebay.DataTaskService"
ENDPOINT_FILE = Path("endpoints") / "driver.json"
# A driver that is restarted answers again well within this many heartbeat timeouts.
PATIENCE_TIMEOUTS = 6
_MESSAGE_LONGEST = 2000  # gRPC carries error details in a header of at most 8 kB
_PAUSE_FIRST, _PAUSE_LONGEST = 0.02, 0.5
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.so_reuseport", 0),
]
_RETRIED = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)

Reply = TypeVar("Reply", bound=Message)


Handler = Callable[[Any, grpc.ServicerContext], Message]
Methods = Mapping[str, tuple[type[Message], Handler]]


class _TokenCheck(grpc.ServerInterceptor):
    """Refuses every call without the job's token before its message is read."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._refusal: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
            self._refuse
        )

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:  # noqa: ANN401 - gRPC's own signature
        shown = dict(handler_call_details.invocation_metadata).get(HEADER)
        if is_allowed(shown, self._token):
            return continuation(handler_call_details)
        return self._refusal

    @staticmethod
    def _refuse(_message: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "this port wants the job's token")


class RpcServer:
    """Serves methods on a free loopback port."""

    def __init__(self, token: str, methods: Methods, threads: int) -> None:
        """Bind; `threads` bounds the calls that wait at the same time."""
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="rpc"),
            interceptors=[_TokenCheck(token)],
            options=_OPTIONS,
        )
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(_served(kind, handler))
            for name, (kind, handler) in methods.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def stop(self, grace_seconds: float = 0.5) -> None:
        """Answer no more."""
        self._server.stop(grace_seconds).wait()


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
    """How long a role of a job goes on calling while no driver answers.

    A driver that hangs is ended and started again meanwhile.
    """
    failover = job.failover
    hung = failover.progress_deadlines.driver
    return (hung + failover.heartbeat_timeout * PATIENCE_TIMEOUTS).total_seconds()


class DriverClient:
    """Calls the driver of a job, wherever it now listens."""

    def __init__(self, job_dir: Path, token: str, patience_seconds: float) -> None:
        """`patience_seconds` bounds how long a call goes on while no driver answers."""
        self._endpoint_file = job_dir / ENDPOINT_FILE
        self._metadata = ((HEADER, bearer(token)),)
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._channel: grpc.Channel | None = None
        self._address = ""

    def call(
        self, method: str, request: Message, reply: type[Reply], timeout: float = 5.0
    ) -> Reply:
        """Send until there is an answer.

        Raises:
            ForebayError: the driver's own refusal, in its class.
            InfrastructureError: when no driver answered within the patience, or `close` was called.
        """
        message = request.model_dump_json().encode()
        options = {"timeout": timeout, "metadata": self._metadata}
        left = self._patience
        trouble = "no endpoint yet"
        for pause in _pauses():
            if self._closed.is_set():
                trouble = "this client is closed"
                break
            began = time.monotonic()
            try:
                channel = self._connected()
                with waiting():  # it has a deadline, and the driver is watched itself
                    answer = _sent(channel, method, message, options)
                return reply.model_validate_json(answer)
            except grpc.RpcError as error:
                trouble = _retried_or_raised(method, error)
                self._forget(channel)
            except _ChannelClosedError:
                trouble = "another call lost the driver"
                self._forget(channel)
            except (OSError, ValidationError) as error:
                trouble = f"{self._endpoint_file.name}: {error}"
            # What is longer was a stop of this process, in which no driver could answer it.
            left -= min(time.monotonic() - began, timeout) + pause
            if left < 0 or self._closed.wait(pause):
                break
        raise InfrastructureError(f"the driver did not answer {method}: {trouble}")

    def close(self) -> None:
        """Give up the call under way and refuse further ones."""
        self._closed.set()
        with self._lock:
            channel = self._channel
        if channel is not None:
            self._forget(channel)

    def _connected(self) -> grpc.Channel:
        with self._lock:
            if self._channel is None:
                text = self._endpoint_file.read_text()
                self._address = Endpoint.model_validate_json(text).address
                self._channel = grpc.insecure_channel(self._address, _OPTIONS)
            return self._channel

    def _forget(self, channel: grpc.Channel) -> None:
        """Close a channel; a newer one, by which another thread found the driver, stays."""
        with self._lock:
            if self._channel is channel:
                self._channel = None
        channel.close()


def _sent(channel: grpc.Channel, method: str, message: bytes, options: dict[str, Any]) -> bytes:
    send: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/{method}")
    try:
        return send(message, **options)
    except ValueError as error:  # what gRPC raises for a closed channel
        raise _ChannelClosedError from error


def _pauses() -> Iterator[float]:
    pause = _PAUSE_FIRST
    while True:
        yield pause
        pause = min(pause * 2, _PAUSE_LONGEST)


def _retried_or_raised(method: str, error: grpc.RpcError) -> str:
    """The words of an error that is worth another try; raises the others."""
    call = error if isinstance(error, grpc.Call) else None
    code = call.code() if call else None
    details = (call.details() if call else None) or str(error)
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        raise ErrorReport.model_validate_json(details).exception() from None
    if code is None or code not in _RETRIED:
        raise InfrastructureError(f"the driver refused {method}: {code}: {details}") from error
    return f"{code.name}: {details}"
