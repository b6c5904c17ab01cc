"""What a data executor serves, derived from the pipeline's declaration."""

from __future__ import annotations

from collections.abc import Mapping

from forebay.config.specs.feeds import hours_together, stream_feed
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.mixture.queue.queue import Limits, QueueSources

_CHUNKS = 2  # the bytes always have room for this many
_NUMBER_BYTES = 8


def queue_sources_of(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> QueueSources:
    """Uses of sources in index order; each belongs to its stream."""
    names, streams = zip(*pipeline.dataset.streams.items(), strict=True)
    groups = [names.index(use.stream) for use in pipeline.uses]
    return QueueSources(
        names=pipeline.use_names,
        feeds=[stream_feed(names[group], streams[group], sources) for group in groups],
        weights=[streams[group].weight for group in groups],
        groups=groups,
        floors=[stream.floor for stream in streams],
        queue_unit=pipeline.dataset.queue_unit,
    )


def limits_of(pipeline: PipelineSpec, columns: int) -> Limits:
    """Bounds of the queue. columns: the most that are read of a row.

    A chunk's bytes are known only once it is decoded, so rows of thousands of columns come in
    smaller chunks from the first one on: each column counts as one number.
    """
    buffers = pipeline.job.buffers
    narrow = buffers.bytes_max // _CHUNKS // (_NUMBER_BYTES * max(1, columns))
    return Limits(
        minibatch_rows=pipeline.train.minibatch_rows,
        rows_max=buffers.rows_max,
        bytes_max=buffers.bytes_max,
        chunk_rows=max(1, min(buffers.chunk_rows, narrow)),
        flush_seconds=buffers.flush_seconds,
        hours_together=hours_together(pipeline),
        settle_seconds=buffers.settle_seconds,
    )
