"""The contract of a transport: frames of one epoch for credits, to one caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from forebay.executors.wire.messages import FrameHead
from forebay.mixture.queue.queue import FrameRows


@dataclass(frozen=True)
class Received:
    """A received frame: its rows (None where only positions moved) and its head."""

    head: FrameHead
    batch: pa.RecordBatch | None


class FrameStream(Protocol):
    """Frames of one epoch of one executor. One thread receives; grants may come from others."""

    def receive(self) -> Received | None:
        """The next frame; None when the executor closed the epoch, or `close` was called.

        Raises:
            InfrastructureError: when the connection broke, or the epoch is not available.
            ValueError: when what came is not a frame.
        """

    def grant(self, credits: int) -> None:  # noqa: A002 - the word of the protocol
        """Make room for more minibatches. A broken connection is reported by `receive`."""

    def close(self) -> None:
        """Stop: a `receive` under way ends soon."""


class Transport(Protocol):
    """Opens streams of frames, in the trainer."""

    def connect(self, address: str, epoch: int) -> FrameStream:
        """Open the stream of an epoch; the executor may reach that epoch a moment later.

        Raises:
            InfrastructureError: when nothing listens there.
        """


class FrameSource(Protocol):
    """One epoch's minibatches, in a data executor."""

    def next(self, timeout_seconds: float) -> tuple[FrameHead, FrameRows] | None:
        """The next minibatch; None when none came in time.

        Raises:
            QueueClosedError: when the epoch ended.
        """


# Waits for an epoch and hands out its frames; None when they are not available.
Claim = Callable[[int], FrameSource | None]


class FrameServer(Protocol):
    """The socket of a data executor, bound when it is made."""

    @property
    def address(self) -> str:
        """Where it listens."""

    def start(self) -> None:
        """Answer in separate threads."""

    def close(self) -> None:
        """Stop answering; streams that are still open end soon."""
