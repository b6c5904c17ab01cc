"""How long after it was published a row of a topic is trained on by a line that is followed.

    python benchmarks/continuous.py [--minutes 20] [--rows-per-second 2000]
        [--slice 10] [--every 120]

A real broker, a producer that stamps by the clock, and `forebay run --follow` with its own
processes. The clock is set: an hour of it is ten minutes here, so that borders of windows come up;
all seconds that are told are those of a wall clock. `lag` is sampled twice a second: now minus when
the newest row that a step has used was published. `waits` are of rows, from their publication to
their step, as their trainer counts them: no less than they were, and at most one message more.
`served` is now minus when the newest row was published that the model has learnt which serves, once
the first window has ended: models are exported every two minutes while their window goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from forebay.datatasks.sources.kafka.producer import create_topic, publish_batches
from forebay.embedded.kafka.broker import Broker
from forebay.executors.job.stored_jobs import newest_jobs
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home
from forebay.system.instants import to_us

RATE = 6.0
DAY = datetime(2026, 3, 2, tzinfo=UTC)
BEGIN = DAY + timedelta(hours=1, minutes=54)  # a border comes after one minute
PARTITIONS, TOPIC, SAMPLE_SECONDS = 4, "clicks", 0.5
COLUMNS = {"event": "int", "at": "timestamp", "user": "string", "price": "float", "clicked": "int"}


def rows_of(number: int, count: int, at: datetime) -> pa.Table:
    random = np.random.default_rng(number)
    users = random.zipf(1.3, count) % 5_000
    return pa.table(
        {
            "event": np.arange(count, dtype=np.int64) + number * 1_000_000,
            "at": pa.array([at] * count, pa.timestamp("us", tz="UTC")),
            "user": pa.array(np.char.add("u", users.astype(str))),
            "price": random.gamma(2.0, 10.0, count),
            "clicked": (random.random(count) < 0.2 + 0.1 * (users % 7 == 0)).astype(np.int64),
        }
    )


def written(root: Path, bootstrap: str, end: datetime, asked: argparse.Namespace) -> None:
    """The declarations, and history: as many rows an hour as the stream has."""
    options = {"bootstrap": bootstrap, "topic": TOPIC}
    source = {"columns": COLUMNS, "event_time": "at"}
    starts = {"starts": f"{DAY:%Y-%m-%dT01:00}"}
    features = {
        "user": {"encode": "hash", "buckets": 5_000},
        "price": {"encode": "numeric", "transform": "log1p"},
    }
    files: dict[str, dict[str, Any]] = {
        "sources/history": {"kind": "parquet", "options": {"path": "data"}, **source},
        "sources/clicks": {"kind": "kafka", "options": options, **source, **starts},
        "pipelines/ads": {
            "dataset": {
                "window": "1h",
                "start": f"{BEGIN:%Y-%m-%dT%H:00}",
                "end": f"{end:%Y-%m-%dT%H:00}",
                "event_id": "event",
                "label": {"column": "clicked"},
                "streams": {
                    "history": {"sources": ["history"], "offset": "24h"},
                    "clicks": {"sources": ["clicks"], "weight": 1.2},
                },
                "features": features,
            },
            "model": {"kind": "towers"},
            "train": {"paradigm": "mixture", "minibatch_rows": 1024},
            "job": {
                "process": "continuous",
                "publish": {"every": f"{asked.every:.0f}s"},
                "continuous": {"slice": f"{asked.slice * RATE:.0f}s", "seal": "30s"},
            },
        },
    }
    for name, spec in files.items():
        path = root / "config" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
    (root / "data").mkdir()
    for hour in range(BEGIN.hour, end.hour + 1):
        at = DAY - timedelta(days=1) + timedelta(hours=hour, minutes=30)
        table = rows_of(10_000 + hour, int(asked.rows_per_second * 3600 / RATE), at)
        pq.write_table(table, root / "data" / f"{hour:02}.parquet", row_group_size=50_000)


class Stream:
    """Publishes until the clock says that it is over."""

    def __init__(self, bootstrap: str, anchor: float, rows_per_second: int) -> None:
        self._bootstrap, self._anchor, self._rate = bootstrap, anchor, rows_per_second
        self.rows = 0

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=(time.time() - self._anchor) * RATE)

    def publish_until(self, end: datetime) -> None:
        number, began = 0, time.time()
        while self.now() < end:
            due = int((time.time() - began) * self._rate) - self.rows
            if due >= PARTITIONS:
                at, each = self.now(), due // PARTITIONS
                pieces = [
                    (rows_of(number + place, each, at), at, place) for place in range(PARTITIONS)
                ]
                publish_batches(self._bootstrap, TOPIC, pieces)
                self.rows += each * PARTITIONS
                number += PARTITIONS
            time.sleep(0.05)


@contextmanager
def broker(root: Path) -> Iterator[str]:
    found = Broker(Home(root / "kafka"))
    bootstrap = found.start().bootstrap
    try:
        create_topic(bootstrap, TOPIC, PARTITIONS, {"retention.ms": "-1"})
        yield bootstrap
    finally:
        found.stop()


def sampled(home: Home, stream: Stream, run: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Until the run ends: lags in seconds, and each window's waits."""
    lags, windows = list[float](), dict[str, dict[str, float]]()
    served, chain = list[float](), ModelChain(home, "ads")
    while run.poll() is None:
        time.sleep(SAMPLE_SECONDS)
        jobs, _ = newest_jobs(home, "ads", None, 1)
        if (newest := newest_served(chain)) is not None:
            served.append((stream.now() - newest).total_seconds() / RATE)
        progress = jobs[0].progress if jobs else None
        lag = progress.lags.get("clicks") if progress is not None else None
        if progress is None or lag is None:
            continue
        lags.append((to_us(stream.now()) - lag.newest_us) / 1e6 / RATE)
        windows[progress.window] = {
            "rows": lag.rows,
            "waits_p50_seconds": round(lag.p50_seconds / RATE, 2),
            "waits_p99_seconds": round(lag.p99_seconds / RATE, 2),
        }
    return {
        "samples": len(lags),
        **{f"lag_p{at}_seconds": round(float(np.percentile(lags, at)), 2) for at in (50, 99, 100)},
        **{f"served_p{at}_seconds": round(float(np.percentile(served, at)), 1) for at in (50, 100)},
        "exports_inside": sum(each.step > 0 for each in chain.switches()),
        "windows": windows,
    }


def newest_served(chain: ModelChain) -> datetime | None:
    """When the newest row of the model that serves was published; None where nothing serves."""
    published = chain.published()
    if published is None:
        return None
    inside = [each.newest_at for each in chain.exports() if each.model == published.model]
    link = chain.link(published.window, published.generation)
    return inside[0] if inside else None if link is None else link.end


def measured(asked: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as bootstrap:
        root, anchor = Path(folder), time.time()
        last = BEGIN + timedelta(minutes=asked.minutes * RATE)
        end = last.replace(minute=0) + timedelta(hours=bool(last.minute))
        written(root, bootstrap, end, asked)
        stream = Stream(bootstrap, anchor, asked.rows_per_second)
        environment = {
            **os.environ,
            "FOREBAY_HOME": str(root / "home"),
            "FOREBAY_CLOCK": f"{BEGIN.isoformat()}@{anchor}x{RATE}",
        }
        os.environ.update(environment)
        publishing = threading.Thread(
            target=stream.publish_until, args=(end - timedelta(minutes=1),), daemon=True
        )
        publishing.start()
        command = [sys.executable, "-m", "forebay", "run", "ads", "--follow"]
        with (root / "run.log").open("wb") as log:
            run = subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=log)
            try:
                facts = sampled(Home(root / "home"), stream, run)
            finally:
                run.kill()
                run.wait()
        if run.returncode != 0:
            raise SystemExit((root / "run.log").read_text())
        publishing.join()
        trained = ModelChain(Home(root / "home"), "ads").links()[-1].seen["clicks"].rows
        subprocess.run(
            [sys.executable, "-m", "forebay", "jobs", "runners", "--end"],
            cwd=root,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return {**facts, "published_rows": stream.rows, "trained_rows": trained}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0, help="of a wall clock")
    parser.add_argument("--rows-per-second", type=int, default=2_000, help="of a wall clock's")
    parser.add_argument("--slice", type=float, default=10.0, help="seconds of a wall clock")
    parser.add_argument("--every", type=float, default=120.0, help="between exports, in seconds")
    facts = measured(parser.parse_args())
    print(json.dumps(facts, indent=1))
    if facts["published_rows"] != facts["trained_rows"]:
        raise SystemExit("rows were lost or repeated")


if __name__ == "__main__":
    main()
