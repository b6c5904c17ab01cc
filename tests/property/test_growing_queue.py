"""The queue while a window grows: the horizon holds rows back, and the priority alone decides."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.mixture.queue.buffer import BufferedChunk
from forebay.mixture.queue.queue import Limits, PrioritisedQueue, QueueSources

NAMES = ["history", "clicks"]


def queue(
    weights: tuple[float, float],
    floor: float = 0.0,
    minibatch_rows: int = 8,
    flush_seconds: float = 0.0,
) -> PrioritisedQueue:
    sources = QueueSources(NAMES, ["batch", "stream"], weights, [0, 1], (floor, 0.0), 10.0)
    limits = Limits(minibatch_rows, 1 << 20, 1 << 30, 1 << 20, flush_seconds, settle_seconds=30.0)
    return PrioritisedQueue(sources, limits, dict.fromkeys(NAMES, 64))


def put(served: PrioritisedQueue, source: int, task: str, slices: list[int]) -> None:
    """A task with these rows, read to its end."""
    rows = pa.record_batch([pa.array(slices, pa.int32())], names=["slice"])
    served.open_task(source, task, slices[0])
    assert served.reserve(source, task, 0)
    served.put(source, task, BufferedChunk(rows, np.array(slices, np.int32), lambda done: done))
    served.end_task(source, task, "end")


def taken(served: PrioritisedQueue, frames: int) -> list[tuple[int, list[int]]]:
    """Slices of the rows that leave, by source, in at most so many minibatches."""
    found = []
    for _ in range(frames):
        frame = served.pop(0)
        if frame is None:
            break
        if frame.rows:  # of the one source of its feed
            rows = [at for batch in frame.batches for at in batch["slice"].to_pylist()]
            found.append((frame.segments[0][0], rows))
    return found


parts = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.integers(0, 6), min_size=1, max_size=20).map(sorted)),
    max_size=6,
)


@given(
    weights=st.sampled_from([(1.0, 1.0), (1.0, 3.0), (3.0, 1.0)]), comes=st.lists(parts, max_size=7)
)
@settings(max_examples=200)
def test_nothing_leaves_before_its_slice_and_all_of_it_does_then(
    weights: tuple[float, float], comes: list[list[tuple[int, list[int]]]]
) -> None:
    served, number = queue(weights), 0
    waiting: list[Counter[int]] = [Counter(), Counter()]
    for horizon in range(7):
        for source, slices in comes[horizon] if horizon < len(comes) else []:
            put(served, source, f"t{number}", slices)
            waiting[source].update(slices)
            number += 1
        served.set_pending({}, is_last=False, horizon=horizon)
        for source, slices in taken(served, 1_000):
            assert max(slices) <= horizon
            waiting[source].subtract(slices)
        for each in waiting:
            assert not any(count for at, count in each.items() if at <= horizon)
            assert all(count >= 0 for count in each.values())


@given(st.integers(1, 5), st.integers(1, 40))
def test_fresh_rows_do_not_wait_for_history_of_earlier_slices(behind: int, rows: int) -> None:
    served = queue((1.0, 3.0))
    put(served, 0, "old", [0] * 500)
    put(served, 1, "new", [behind] * rows)
    served.set_pending({}, is_last=False, horizon=behind)
    frames = -(-rows // 8) + 1  # by weight it is first until nothing of it waits
    left = [len(slices) for source, slices in taken(served, frames) if source == 1]
    assert sum(left) == rows


def paced(weights: tuple[float, float], floor: float) -> tuple[list[int], list[float]]:
    """Primus Fig. 11: a trainer takes 100 rows in a slice; for six slices batch has 50 and stream
    80. Stream rows that wait at the end of each slice, and the batch's share of what was taken.
    """
    served = queue(weights, floor, minibatch_rows=10, flush_seconds=60.0)
    backlog, waits, shares = 0, list[int](), list[float]()
    for number in range(24):
        put(served, 0, f"b{number}", [number] * 50)
        fresh = 80 if 6 <= number < 12 else 50
        put(served, 1, f"s{number}", [number] * fresh)
        backlog += fresh
        served.set_pending({}, is_last=False, horizon=number)
        rows: Counter[int] = Counter()
        for _ in range(10):
            for source, slices in taken(served, 1):
                rows[source] += len(slices)
        backlog -= rows[1]
        waits.append(backlog)
        shares.append(rows[0] / max(1, rows.total()))
    return waits, shares


def test_batch_yields_to_a_stream_that_has_more_and_keeps_its_floor() -> None:
    waits, shares = paced((1.0, 3.0), floor=0.1)
    assert max(waits) <= 20, "within one slice's minibatches"
    assert all(share >= 0.1 - 1e-9 for share in shares)
    assert min(shares[6:12]) < 0.3 < max(shares[12:])
    evenly, _ = paced((1.0, 1.0), floor=0.1)
    assert max(evenly) > max(waits), "by equal weights the stream has to wait"


@given(
    sizes=st.lists(st.integers(8, 200), min_size=2, max_size=6), minibatch_rows=st.integers(1, 8)
)
def test_partitions_of_a_slice_take_turns(sizes: list[int], minibatch_rows: int) -> None:
    """They have rows of the same time: after any minibatch, equal shares of them have left."""
    sources = QueueSources(["clicks"], ["stream"], [1.0], [0], [0.0], 10.0)
    limits = Limits(minibatch_rows, 1 << 20, 1 << 30, 1 << 20, 0.0)
    served = PrioritisedQueue(sources, limits, {"clicks": 64})
    for partition, size in enumerate(sizes):
        rows = pa.record_batch([pa.array([partition] * size)], names=["partition"])
        served.open_task(0, partition, 0)
        assert served.reserve(0, partition, 0)
        chunk = BufferedChunk(rows, np.zeros(size, np.int32), lambda done: done)
        served.put(0, partition, chunk)
        served.end_task(0, partition, "end")
    served.set_pending({}, is_last=False, horizon=0)
    left: Counter[int] = Counter()
    while (frame := served.pop(0)) is not None and frame.rows:
        for batch in frame.batches:
            left.update(batch["partition"].to_pylist())
        shares = [left[partition] / size for partition, size in enumerate(sizes)]
        assert max(shares) - min(shares) <= minibatch_rows / min(sizes) + 1e-9
    assert left == Counter(dict(enumerate(sizes)))
