"""`make demo LIVE=1`: a stream on Kafka whose rows are trained on seconds after they are published.

The market is generated, the broker and everything else is real. The clock is set, so that an hour
of the market takes a minute; all seconds that are shown are those of a wall clock.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from rich.console import Console
from rich.live import Live
from rich.table import Table

from examples.demo.count import Stored, kafka_rows, parquet_rows, row_sums
from examples.demo.data.ad_market import START, Market, features_of, generate
from examples.demo.mode import say
from examples.demo.signals import undisturbed
from forebay.datatasks.sources.kafka.producer import create_topic, publish_batches
from forebay.embedded.kafka.broker import Broker
from forebay.errors import InfrastructureError, RowsLostError
from forebay.executors.job.stored_jobs import newest_jobs
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.system.clock import CLOCK_NAME
from forebay.system.instants import from_us, to_us

RATE = 60.0
_DAY = timedelta(days=1)
BEGIN = START + 2 * _DAY + timedelta(hours=13, minutes=50)
END = START + 2 * _DAY + timedelta(hours=16)
MARKET, HOURLY = Market(wait=timedelta(0)), 15_000
PARTITIONS, TOPIC, PIPELINE = 4, "impressions", "live"
_LOOK_SECONDS, _LINE_SECONDS, _PUBLISH_SECONDS = 0.5, 5.0, 0.2
_COLUMNS = ("id", "user", "item", "category", "segment", "position", "device", "converted")


def play_live(home: Home) -> None:
    """Follow a line for two minutes, in a home of its own that is new each time.

    Raises:
        RowsLostError: when the model's row sums are not those of an independent count.
        InfrastructureError: when the run fails; the text is what it printed.
    """
    root = home.root / "demo"
    if home.root.exists() and not root.is_dir():
        raise InfrastructureError(f"{home.root} is not of this demo: move it away")
    shutil.rmtree(home.root, ignore_errors=True)
    events = generate(MARKET, 1, days=3, hourly=HOURLY)
    files = _write_history(events.history(), root / "history")
    broker = Broker(Home(root / "kafka"))
    bootstrap = broker.start().bootstrap
    try:
        create_topic(bootstrap, TOPIC, PARTITIONS, {"retention.ms": "-1"})
        _declare(root, bootstrap)
        stream = _Stream(bootstrap, events.stream())
        with _followed(root, home, stream) as run:
            _watch(home, stream, run)
        _conclude(
            home, stream, {"history": files, "live": kafka_rows(bootstrap, TOPIC, "converted")}
        )
    finally:
        with undisturbed():
            broker.stop()


def _write_history(rows: pa.Table, folder: Path) -> Stored:
    """A day before the hours that are trained; what the model is to have seen of it."""
    first = BEGIN.replace(minute=0) - _DAY
    folder.mkdir(parents=True)
    for hour in range((END - BEGIN).seconds // 3600 + 1):
        low, high = (first + timedelta(hours=hour + each) for each in (0, 1))
        inside = pc.and_(pc.greater_equal(rows["at"], low), pc.less(rows["at"], high))
        pq.write_table(rows.filter(inside), folder / f"{low:%H}.parquet")
    return parquet_rows(folder, time="at", label="converted")


def _declare(root: Path, bootstrap: str) -> None:
    columns = {**dict.fromkeys(_COLUMNS, "int"), "at": "timestamp"}
    source = {"columns": columns, "event_time": "at"}
    kafka = {"bootstrap": bootstrap, "topic": TOPIC}
    begin = f"{BEGIN:%Y-%m-%dT%H:00}"
    streams = {
        "history": {"sources": ["history"], "offset": "24h"},
        "live": {"sources": ["live"], "weight": 1.2},
    }
    files: dict[str, dict[str, Any]] = {
        "sources/history": {"kind": "parquet", "options": {"path": "history"}, **source},
        "sources/live": {"kind": "kafka", "options": kafka, "starts": begin, **source},
        f"pipelines/{PIPELINE}": {
            "dataset": {
                "window": "1h",
                "start": begin,
                "end": f"{END:%Y-%m-%dT%H:%M}",
                "event_id": "id",
                "label": {"column": "converted"},
                "streams": streams,
                "features": features_of(MARKET),
                "queue_unit": 256,
            },
            "train": {"paradigm": "mixture", "minibatch_rows": 256},
            "job": {
                "process": "continuous",
                "continuous": {"slice": "2m", "seal": "10s", "lag_slo": "10m"},
                "publish": {"every": "20s", "serving": "exports"},
            },
        },
    }
    for name, spec in files.items():
        path = root / "config" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(spec, sort_keys=False))


@dataclass
class _Stream:
    """Publishes each event when the clock says that it happens, until a moment before the end."""

    bootstrap: str
    rows: pa.Table
    anchor: float = field(default_factory=time.time)
    published: int = 0

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=(time.time() - self.anchor) * RATE)

    def publish(self, over: threading.Event) -> None:
        at = self.rows["at"].cast(pa.int64()).to_numpy()
        done, last = (int(np.searchsorted(at, to_us(each))) for each in (BEGIN, END))
        while not over.wait(_PUBLISH_SECONDS) and (now := self.now()) < END - timedelta(minutes=2):
            due = min(last, int(np.searchsorted(at, to_us(now))))
            step = max(1, -(-(due - done) // PARTITIONS))
            pieces = [self.rows.slice(low, min(step, due - low)) for low in range(done, due, step)]
            batches = ((rows, now, place) for place, rows in enumerate(pieces))
            publish_batches(self.bootstrap, TOPIC, batches)
            self.published, done = self.published + due - done, due


@contextmanager
def _followed(root: Path, home: Home, stream: _Stream) -> Iterator[subprocess.Popen[str]]:
    clock = f"{BEGIN.isoformat()}@{stream.anchor}x{RATE}"
    environ = {**os.environ, ENVIRONMENT_NAME: str(home.root.absolute()), CLOCK_NAME: clock}
    os.environ.update(environ)
    over = threading.Event()
    publishing = threading.Thread(target=stream.publish, args=(over,))
    command = [sys.executable, "-P", "-m", "forebay.cli"]
    say(f"$ forebay run {PIPELINE} --follow")
    with (root / "run.log").open("w+") as log:
        run = subprocess.Popen(
            [*command, "run", PIPELINE, "--follow"],
            cwd=root,
            env=environ,
            stdout=log,
            stderr=log,
            text=True,
        )
        publishing.start()
        try:
            yield run
        finally:
            with undisturbed():
                over.set()
                publishing.join()
                run.kill()
                run.wait()
                for ends in (["cancel", PIPELINE], ["jobs", "runners", "--end"]):
                    ending = [*command, *ends]
                    subprocess.run(ending, cwd=root, env=environ, capture_output=True, check=False)
    if run.returncode not in (0, -9):
        raise InfrastructureError((root / "run.log").read_text())


def _watch(home: Home, stream: _Stream, run: subprocess.Popen[str]) -> None:
    """A picture that changes on a terminal; a line every few seconds elsewhere."""
    console, said = Console(), 0.0
    with Live(console=console, auto_refresh=False) as live:
        while run.poll() is None:
            time.sleep(_LOOK_SECONDS)
            facts = _facts(home, stream)
            if console.is_terminal:
                live.update(_picture(facts), refresh=True)
            elif time.monotonic() - said > _LINE_SECONDS:
                said = time.monotonic()
                say("  ".join(f"{name} {value}" for name, value in facts.items()))


def _facts(home: Home, stream: _Stream) -> dict[str, str]:
    jobs, _ = newest_jobs(home, PIPELINE, None, 1)
    progress, chain = (jobs[0].progress if jobs else None), ModelChain(home, PIPELINE)
    facts = {"clock": f"{stream.now():%H:%M}", "published": f"{stream.published:,}"}
    lag = None if progress is None else progress.lags.get("live")
    if progress is not None and lag is not None:
        now, served = stream.now(), progress.served_newest_us
        facts |= {
            "window": progress.window,
            "rows/s": f"{progress.rows_per_second:,.0f}",
            "lag": f"{(now - from_us(lag.newest_us)).total_seconds() / RATE:.1f} s",
            "p50": f"{lag.p50_seconds / RATE:.1f} s",
            "p99": f"{lag.p99_seconds / RATE:.1f} s",
        }
        if served:
            facts["served"] = f"{(now - from_us(served)).total_seconds() / RATE:.0f} s old"
    for link in chain.links():
        judged = chain.judgement(link)
        found = None if judged is None else judged.metrics.get("mixture")
        if found is not None and found.auc_fresh is not None:
            facts[f"AUC {link.window[-3:]}"] = f"{found.auc_fresh:.3f}"
    return facts


def _picture(facts: dict[str, str]) -> Table:
    table = Table(*facts, pad_edge=False)
    table.add_row(*facts.values())
    return table


def _conclude(home: Home, stream: _Stream, stored: dict[str, Stored]) -> None:
    link = ModelChain(home, PIPELINE).links()[-1]
    for name, rows in stored.items():
        if (expected := row_sums(rows.ids)) != link.seen[name].model_dump():
            raise RowsLostError(f"{name}: counted {expected}, the model has {link.seen[name]}")
    for name, value in _facts(home, stream).items():
        if name.startswith("AUC"):
            say(f"{name}h of the stream's rows, scored before they were trained on: {value}")
    inside = sum(each.step > 0 for each in ModelChain(home, PIPELINE).switches())
    say(f"serving  {inside} models of windows that went on, and those of the hours")
    say(
        f"count  an independent count matches the model's row sums exactly: {stream.published:,} "
        f"rows of the stream, {link.seen['history'].rows:,} of history, 0 lost, 0 repeated"
    )
