"""`python -m support.crowd FOLDER PROCESSES SECONDS`: many processes at one home, on a slow disk.

A disk whose every sync takes 20 ms longer is simulated: in `os.fsync`, and before each COMMIT,
which syncs the write-ahead log. A line of JSON for each process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, event

from forebay.config.specs.windows import Window
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import FencedError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import ReadRows
from forebay.executors.stages.claims import Claims
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from support.links import judgement, link, window_of
from support.model_lines import empty_plan
from support.whole_life.in_process import code_of, forked

PIPELINES = 5
SYNC_SECONDS = 0.02
START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
T = TypeVar("T")


class Member:
    def __init__(self, home: Home, number: int) -> None:
        self.pipeline = f"ads{number % PIPELINES}"
        self.ledger = Ledger(home, self.pipeline)
        self.chain = ModelChain(home, self.pipeline, f"line{number}")
        self.longest_seconds = 0.0

    def finish(self, number: int) -> None:
        before_it, window = map(_window, (number - 1, number))
        if self.timed(lambda: self.ledger.latest_plan(window.key)) is None:
            with suppress(FencedError):  # another one planned it at this moment
                self.timed(lambda: self.ledger.record_plan(empty_plan(window.key), {}))
        claim = Claims(self.ledger, window.key)
        generation = self.timed(lambda: claim.decide("run#1", renewed=None))
        assert generation == 1, generation
        before = self.timed(lambda: self.chain.newest(before_it.key))
        rows = before.seen["clicks"].rows if before else 0
        name = f"models/{self.chain.line}-{number:032x}.tree"
        model = Stored(name=name, checksum="0" * 64, size_bytes=1)  # nobody opens it
        made = link(
            window.key,
            {"clicks": rows + 7},
            {"clicks": rows},
            parent=(before.window, before.generation) if before else None,
            step=number + 1,
            steps=1,
            read={"clicks": ReadRows(rows=7)},
            files={"saved_model": model},
        )
        self.timed(lambda: self.chain.record(made))
        self.timed(lambda: self.chain.judge(made, judgement(made)))
        assert not self.timed(lambda: self.chain.publish(made, window.end))
        served = self.timed(self.chain.published)
        assert served is not None
        assert served.window == window.key

    def timed(self, work: Callable[[], T]) -> T:
        began = time.monotonic()
        try:
            return work()
        finally:
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)


def _window(number: int) -> Window:
    return window_of(f"{START + number * HOUR:%Y-%m-%dT%H}")


def slow_disk() -> None:
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        time.sleep(SYNC_SECONDS)
        fsync(descriptor)

    def before_commit(connection: Connection) -> None:
        if connection.get_execution_options().get("forebay_writes"):
            time.sleep(SYNC_SECONDS)

    os.fsync = slow
    event.listen(Engine, "commit", before_commit)


def work(home: Home, number: int, seconds: float) -> None:
    slow_disk()
    member, windows = Member(home, number), 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        member.finish(windows)
        windows += 1
    told = {"windows": windows, "longest_seconds": member.longest_seconds}
    os.write(1, (json.dumps(told) + "\n").encode())


def main() -> None:
    home, processes, seconds = Home(Path(sys.argv[1])), int(sys.argv[2]), float(sys.argv[3])
    children = [forked(partial(work, home, number, seconds)) for number in range(processes)]
    sys.exit(max(abs(code_of(child)) for child in children))


if __name__ == "__main__":
    main()
