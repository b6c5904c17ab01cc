"""How long rows of a stream wait while more arrives than the trainer can take (Primus Fig. 11).

    python benchmarks/bursts.py [--pace 1000] [--partitions 4] [--slice 10]

A real broker and the whole line, followed on the plane `inline` by a wall clock that is only set to
another day. The trainer counts rows and takes no more of them a second than `--pace`, which is 1x.
The stream arrives at 0.5x, batch at 0.25x; for 60 s the stream arrives at 0.8x and batch at 0.5x,
from a file in which rows of another hour lie between those of the window. A row's lag is from its
publication to the end of its step. The same arrivals go three ways: `forebay`: the stream has
weight 3, batch has weight 1 and a floor; `weight 1`: both have weight 1, so that the longer queue
is first; `first in, first out`: earlier slices are first.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.datatasks.sources.kafka.producer import create_topic, publish_batches
from forebay.embedded.kafka.broker import Broker
from forebay.executors.arrow_start import start_arrow
from forebay.executors.follow import Follow
from forebay.executors.run import Watch
from forebay.executors.stages.target import LineTarget
from forebay.home.paths import Home
from forebay.mixture.counting import CountingLearner
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.queue.queue import PrioritisedQueue
from forebay.system.clock import CLOCK_NAME, utc_now
from forebay.system.instants import to_us

BEGIN, HOUR = datetime(2026, 3, 2, 1, tzinfo=UTC), timedelta(hours=1)
LEAD, BURST, BURST_END, END = 30.0, 60.0, 120.0, 270.0  # seconds; the window begins at 0
STREAM, BATCH_MOST = (0.5, 0.8), 0.5  # of the pace; batch has half of that but in the burst
MINIBATCH_ROWS, FLOOR, FIFO = 128, 0.1, "first in, first out"
WAYS = {"forebay": (FLOOR, 3), "weight 1": (FLOOR, 1), FIFO: (0, 1)}  # floor, stream's weight
COLUMNS = "columns: {event: int, at: timestamp, published: float, clicked: int}\n"
HISTORY = COLUMNS + "kind: parquet\noptions: {path: data}\nevent_time: at\n"
CLICKS = 'kind: kafka\nstarts: 2026-03-02T01:00\noptions: {{bootstrap: "{}", topic: clicks}}\n'
PIPELINE = """
dataset:
  {{window: 1h, start: 2026-03-02T01:00, event_id: event, label: {{column: clicked}},
  features: {{published: {{encode: numeric}}}}, queue_unit: {}, streams: {{
    history: {{sources: [history], offset: 24h, floor: {}}},
    clicks: {{sources: [clicks], weight: {}}}}}}}
model: {{kind: count}}
train: {{minibatch_rows: {}}}
job: {{plane: inline, process: continuous, continuous: {{slice: {}s}}}}
"""
# When it was over, whether its rows are of the stream, their ids, when they were published.
Step = tuple[float, bool, npt.NDArray[np.int64], npt.NDArray[np.float32]]


def seconds_now() -> float:
    return (utc_now() - BEGIN).total_seconds()


def rows_of(first: int, at: npt.NDArray[np.int64], published: float) -> pa.Table:
    events, stamps = np.arange(first, first + len(at)), pa.array(at, pa.timestamp("us", "UTC"))
    columns = [events, stamps, np.full(len(at), published), events % 2]
    return pa.table(columns, ["event", "at", "published", "clicked"])


def places(pace: int) -> npt.NDArray[np.bool_]:
    """Of an hour's places in the file, which come at 0.5x: those with a row of the window."""
    number = np.arange(int(3600 * BATCH_MOST * pace))
    seconds = number / (BATCH_MOST * pace)
    found: npt.NDArray[np.bool_] = (seconds >= BURST) & (seconds < BURST_END) | (number % 2 == 0)
    found &= seconds < END
    found[-1] = True  # places are counted from the window's first row to its last
    return found


def written(bootstrap: str, way: str, asked: argparse.Namespace) -> None:
    for folder in ("config/sources", "config/pipelines", "data"):
        Path(folder).mkdir(parents=True)
    pipeline = PIPELINE.format(10 * asked.pace, *WAYS[way], MINIBATCH_ROWS, asked.slice)
    Path("config/pipelines/ads.yaml").write_text(pipeline)
    Path("config/sources/clicks.yaml").write_text(COLUMNS + CLICKS.format(bootstrap))
    Path("config/sources/history.yaml").write_text(HISTORY)
    at = np.where(places(asked.pace), to_us(BEGIN - 24 * HOUR), to_us(BEGIN - 23 * HOUR))
    pq.write_table(rows_of(1 << 40, at, 0.0), "data/rows.parquet", row_group_size=len(at))


def publish(bootstrap: str, asked: argparse.Namespace) -> int:
    """The stream's rows until the end, as many in each partition; returns how many."""
    first, (usual, most) = 0, STREAM
    while (seconds := seconds_now()) < END:
        in_burst = min(max(0.0, seconds - BURST), BURST_END - BURST)
        due = int((usual * seconds + (most - usual) * in_burst) * asked.pace)
        borders = np.linspace(first, max(first, due), asked.partitions + 1, dtype=np.int64)
        at, published = utc_now(), seconds_now()
        pieces = [
            (rows_of(begin, np.full(end - begin, to_us(at)), published), at, place)
            for place, (begin, end) in enumerate(pairwise(borders.tolist()))
        ]
        publish_batches(bootstrap, "clicks", [each for each in pieces if each[0].num_rows])
        first = int(borders[-1])
        time.sleep(0.1)
    return first


class Paced(CountingLearner):
    def __init__(self, pace: float) -> None:
        super().__init__(source_count=2)
        self._pace, self._free = pace, 0.0
        self.used: list[Step] = []

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        self._free = max(self._free, time.monotonic()) + len(minibatch) / self._pace
        losses = super().learn(minibatch)
        time.sleep(max(0.0, self._free - time.monotonic()))
        ids, published = minibatch.row_ids.copy(), minibatch.dense[:, 0].copy()
        self.used.append((seconds_now(), minibatch.feed == "stream", ids, published))
        return losses


class FirstInFirstOut(PrioritisedQueue):
    def _candidates(self) -> tuple[int, list[int]]:
        hours = [buffer.hour() for buffer in self._buffers]
        hour = min([super()._candidates()[0], *(each for each in hours if each is not None)])
        return hour, [buffer.available(hour) for buffer in self._buffers]


def follow(way: str, asked: argparse.Namespace, found: Connection) -> None:
    """In a process of its own, which sends what was used and ends."""
    learner, queue = Paced(asked.pace), FirstInFirstOut if way == FIFO else PrioritisedQueue
    target = LineTarget.load(Path("config"), "ads", "main")
    start_arrow(target.kinds)
    with (
        patch("forebay.executors.trainer.train.make_learner", lambda *_: learner),
        patch("forebay.executors.data_executor.executor.PrioritisedQueue", queue),
    ):
        threading.Thread(target=Follow(lambda: target, Watch()).execute, daemon=True).start()
        time.sleep(END + 2 * asked.slice - seconds_now())
    found.send(learner.used)
    os._exit(0)  # the window goes on for an hour


def figures(stream_rows: int, used: Sequence[Step], asked: argparse.Namespace) -> dict[str, float]:
    at, stream = (np.array(each) for each in list(zip(*used, strict=True))[:2])
    rows = np.array([len(ids) for _, _, ids, _ in used])
    different = len(np.unique(np.concatenate([ids for _, _, ids, _ in used])))
    published = np.concatenate([times for _, of_stream, _, times in used if of_stream])
    lag, got = np.repeat(at, rows * stream) - published, rows * ~stream
    in_burst = (published >= BURST) & (published < BURST_END)
    over = at // asked.slice * asked.slice  # what came until then may leave
    released = np.append(0, np.cumsum(places(asked.pace)))
    waits = released[(over * BATCH_MOST * asked.pace).astype(int)] - np.cumsum(got)
    backlog = waits + np.searchsorted(np.sort(published), over) - np.cumsum(rows * stream)
    gone = at[(at >= BURST_END) & (backlog < MINIBATCH_ROWS)]
    behind = [0.0]
    for count, own, waiting in zip(rows, got, waits, strict=True):
        short = max(0.0, behind[-1] + FLOOR * count - own)
        behind.append(short if waiting >= MINIBATCH_ROWS else 0.0)
    late = (at >= BURST + asked.slice) & (at < BURST_END + asked.slice)
    found = {
        **{f"burst_lag_p{p}_seconds": np.percentile(lag[in_burst], p) for p in (50, 99, 100)},
        "other_lag_p99_seconds": np.percentile(lag[~in_burst], 99),
        "burst_batch_share": got[late].sum() / rows[late].sum(),
        "burst_used_rows_per_second": rows[late].sum() / (BURST_END - BURST),
        "batch_rows_behind_floor_max": max(behind),
        "backlog_rows_max": backlog.max(),
        "backlog_gone_after_seconds": gone.min(initial=2 * END) - BURST_END,
        "rows_used": rows.sum(),
        "rows_lost": stream_rows + released[-2] - different,
        "rows_repeated": rows.sum() - different,
    }
    return {name: round(float(value), 3) for name, value in found.items()}


def measured(way: str, asked: argparse.Namespace) -> dict[str, float]:
    context = get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        broker = Broker(Home(Path("kafka").absolute()))
        bootstrap, (found, told) = broker.start().bootstrap, context.Pipe(duplex=False)
        try:
            create_topic(bootstrap, "clicks", asked.partitions, {"retention.ms": "-1"})
            written(bootstrap, way, asked)
            os.environ[CLOCK_NAME] = f"{BEGIN.isoformat()}@{time.time() + LEAD}x1"
            os.environ["FOREBAY_HOME"] = str(Path("home").absolute())
            context.Process(target=follow, args=(way, asked, told), daemon=True).start()
            told.close()
            return figures(publish(bootstrap, asked), found.recv(), asked)
        finally:
            broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pace", type=int, default=1_000, help="rows that it takes a second")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--slice", type=int, default=10, help="seconds")
    asked = parser.parse_args()
    found = {way: measured(way, asked) for way in WAYS}
    print(json.dumps(found, indent=1))
    if any(each["rows_lost"] or each["rows_repeated"] for each in found.values()):
        raise SystemExit("rows were lost or repeated")


if __name__ == "__main__":
    main()
