"""The frame server for data executors, by the transport that a pipeline declares."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from forebay.config.jobs import JobSpec
from forebay.executors.data_executor.flight_server import FlightFrameServer
from forebay.executors.data_executor.packed_server import PackedFrameServer
from forebay.executors.wire.frames.base import Claim, FrameServer


def frame_server_of(
    job: JobSpec, job_dir: Path, index: int, schema: pa.Schema, claim: Claim
) -> FrameServer:
    """Bind the socket of a data executor. schema: of the rows that it serves.

    Raises:
        InfrastructureError: when the job's folder cannot hold the socket.
    """
    kind = PackedFrameServer if job.transport == "frames" else FlightFrameServer
    return kind(job_dir, index, schema, claim)
