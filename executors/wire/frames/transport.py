"""The transport that a pipeline declares, for its trainer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from forebay.config.jobs import JobSpec
from forebay.executors.wire.frames.base import Transport
from forebay.executors.wire.frames.flight import FlightTransport
from forebay.executors.wire.frames.stream import PackedTransport

# Beside frames in flight: those in the hands of a step, and of what keeps a minibatch a while.
_SPARE_BLOCKS = 2


def transport_of(job: JobSpec, job_dir: Path, schema: pa.Schema) -> Transport:
    """How frames come to the trainer of the job in this folder. schema: of the rows served."""
    if job.transport == "frames":
        blocks = job.roles.data.count * job.buffers.credits + _SPARE_BLOCKS
        return PackedTransport(job_dir, schema, blocks)
    return FlightTransport(job_dir)
