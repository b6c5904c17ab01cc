"""What a data executor holds decoded and unsent, over all tasks: rows and bytes."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from support import independent
from support.data_path import Counter, DataPath
from support.projects import FIRST_DAY, ads_pipeline, clicks_source, rows_of_day

from forebay.datatasks.sources.log.writer import LogWriter
from forebay.errors import ForebayError
from forebay.executors.data_executor.executor import DataExecutor
from forebay.executors.link.local import LocalLink
from forebay.mixture.features.encode import Encoded, Encoder

PARTITIONS = 64
ROWS = 6_000  # in each partition
ROWS_MAX = 32_768
DAY_MS = 86_400_000
MINIBATCH, CREDITS = 256, 2


class Held:
    """Encoded chunks: how many rows there were, and the bytes of those that are in memory."""

    def __init__(self) -> None:
        self.rows = self.bytes = self.most_bytes = self.largest = 0
        self._lock = threading.RLock()  # memory may be freed while it is held

    def add(self, batch: pa.RecordBatch, row_ids: npt.NDArray[np.int64]) -> None:
        """`row_ids` is a part of the batch's memory, and is freed with it."""
        size = batch.get_total_buffer_size()
        with self._lock:
            self.rows += batch.num_rows
            self._change(size)
            self.largest = max(self.largest, size)
        weakref.finalize(row_ids, self._gone, size)

    def _gone(self, size: int) -> None:
        with self._lock:
            self._change(-size)

    def _change(self, size: int) -> None:
        self.bytes += size
        self.most_bytes = max(self.most_bytes, self.bytes)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    found = Held()
    encode = Encoder.encode

    def watched(
        self: Encoder, batch: pa.RecordBatch, row_ids: npt.NDArray[np.int64], *more: Any
    ) -> Encoded:
        own = np.array(row_ids)
        encoded = encode(self, batch, own, *more)
        found.add(encoded.batch, own)
        return encoded

    monkeypatch.setattr(Encoder, "encode", watched)
    return found


@contextmanager
def executor_here(path: DataPath) -> Iterator[None]:
    """A data executor in this process, and its driver in another."""
    path.start("driver")
    path.status()
    executor = DataExecutor(LocalLink(path.job_dir, "data"), 1)

    def run() -> None:
        with suppress(ForebayError):
            executor.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        path.stop()
        executor.close()
        thread.join(30)


def until_nothing_is_decoded(held: Held) -> None:
    """Everybody waits for the trainer."""
    before, since = -1, time.monotonic()
    deadline = since + 60
    while time.monotonic() - since < 1.0:
        assert time.monotonic() < deadline
        if held.rows != before:
            before, since = held.rows, time.monotonic()
        time.sleep(0.05)


@pytest.mark.guarantee(
    "many tasks are read at once and the trainer is slow",
    "nothing; decoded rows stay within `rows_max` of a source, over all tasks together, and "
    "within `bytes_max` too, except for chunks far larger than all before them that are decoded"
    " at the same moment ([protocol.md](protocol.md))",
)
@pytest.mark.parametrize("bytes_max", [pytest.param(64 << 20, marks=pytest.mark.chaos), 1 << 20])
def test_all_tasks_together_stay_within_rows_and_bytes(
    tmp_path: Path, held: Held, bytes_max: int
) -> None:
    day, hour = rows_of_day(FIRST_DAY, ROWS, seed=1), timedelta(hours=1)
    part = ROWS // 8
    segments = [(day.slice(n * part, part), FIRST_DAY + 3 * n * hour) for n in range(8)]
    for partition in range(PARTITIONS):
        LogWriter(tmp_path / "data/clicks", partition).append_all(segments)
    pipeline = ads_pipeline(
        buffers={"credits": CREDITS, "rows_max": ROWS_MAX, "bytes_max": bytes_max}
    )
    del pipeline["dataset"]["streams"]["history"]
    pipeline["train"]["minibatch_rows"] = MINIBATCH
    path = DataPath.of(tmp_path, pipeline, {"clicks": clicks_source()})
    path.plan("2026-03-01", "2026-03-01")
    counter, unsent = Counter(path), [0]

    def count(_step: int) -> None:
        unsent.append(held.rows - sum(rows for _, _, rows in counter.frames))

    with executor_here(path):
        reader = path.reader()
        reader.begin("2026-03-01", 1, {}, 0)
        until_nothing_is_decoded(held)
        unsent.append(held.rows)
        counter.consume(reader, after_step=count, seconds=120)
        reader.close()
    first = int(FIRST_DAY.timestamp() * 1000)
    assert counter.sums() == [independent.log_sums(tmp_path / "data/clicks", first, first + DAY_MS)]
    # Beside the bounds, one minibatch is put together, and others are on their way to the trainer.
    assert max(unsent) <= ROWS_MAX + (CREDITS + 2) * MINIBATCH
    assert held.most_bytes <= bytes_max + held.largest, "a chunk at most"
    if bytes_max > 1 << 20:
        hours = [at for _, at, _ in counter.frames]
        assert hours == sorted(hours), "there is room for rows of every task, so order holds"
