"""Opened sources with the encoders of their rows, for threads that read."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from forebay.config.explain import declared_columns
from forebay.config.specs.datasets import source_of
from forebay.config.specs.feeds import source_feeds
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import SourceReader
from forebay.datatasks.tasks import Chunk, DataTask
from forebay.executors.job.request import JobRequest
from forebay.mixture.features.encode import Encoded, Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served_times import ServedTimes
from forebay.system.instants import to_us


class Readers:
    """Opened sources for runner threads: a `SourceReader` belongs to one thread at a time."""

    def __init__(self, request: JobRequest) -> None:
        pipeline = request.pipeline_spec()
        self.names = pipeline.use_names
        self._specs = request.sources_to_open(pipeline.source_names)
        self.layout = FeatureLayout.of(pipeline.dataset, declared_columns(pipeline, self._specs))
        self.times = ServedTimes.of(pipeline, self._specs)
        feeds = source_feeds(pipeline, self._specs)
        self._encoders = {
            name: Encoder(pipeline.dataset, self.spec(name), self.layout, self.times, feeds[name])
            for name in self.names
        }
        self._ends = {window.key: to_us(window.end) for window in request.windows}
        self._root = Path(request.project_root)
        self._idle: dict[str, list[SourceReader]] = {name: [] for name in self._specs}
        self._lock = threading.Lock()

    @contextmanager
    def source(self, name: str) -> Iterator[SourceReader]:
        """Borrow the opened source of a use. After an error it is closed and not used again."""
        idle = self._idle[source_of(name)]
        with self._lock:
            source = idle.pop() if idle else None
        source = source or open_source(self.spec(name), self._root)
        try:
            yield source
        except BaseException:
            source.close()
            raise
        with self._lock:
            idle.append(source)

    def spec(self, name: str) -> SourceSpec:
        return self._specs[source_of(name)]

    def columns(self, name: str) -> Sequence[str]:
        return self._encoders[name].columns

    def encode(self, task: DataTask, chunk: Chunk) -> Encoded:
        row_ids = chunk.row_ids.copy()  # it may be a part of a larger array
        return self._encoders[task.source].encode(
            chunk.batch, row_ids, chunk.published, self._ends.get(task.window)
        )

    def close(self) -> None:
        with self._lock:
            for sources in self._idle.values():
                while sources:
                    sources.pop().close()
