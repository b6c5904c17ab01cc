"""The transport that a pipeline declares, for its trainer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from forebay.config.jobs import JobSpec
from forebay.executors.wire.frames.base import Transport
from forebay.executors.wire.frames.flight import FlightTransport
from forebay.executors.wire.frames.stream import PackedTransport

# Beside frames in flight: those used by a step, or by code that keeps a minibatch for a while.
_SPARE_BLOCKS = 2


def transport_of(job: JobSpec, job_dir: Path, schema: pa.Schema) -> Transport:
    """How the trainer of the job in this folder receives frames. schema: of the served rows."""
    if job.transport == "frames":
        blocks = job.roles.data.count * job.buffers.credits + _SPARE_BLOCKS
        return PackedTransport(job_dir, schema, blocks)
    return FlightTransport(job_dir)
