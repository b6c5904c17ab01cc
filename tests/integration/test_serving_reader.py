"""A reader that polls a serving path while processes that switch it are killed at any moment."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.s3_server import S3Server
from support.serving_line import (
    Names,
    Read,
    bucket_reader,
    folder_reader,
    poll,
    publish,
    serving_line,
    switch_at_random,
)
from support.there import there

from forebay.executors.serving.switch import Serving
from forebay.home.database.open import close_databases

POLL_SECONDS = 0.02
FORK = multiprocessing.get_context("fork")


def in_child(work: Callable[[], object]) -> multiprocessing.process.BaseProcess:
    """Children are forked from a process without threads and open databases."""

    def run() -> None:
        gc.freeze()  # garbage of gRPC that earlier tests left must not be collected in a child
        work()
        os._exit(0)

    child = FORK.Process(target=run)
    child.start()
    return child


def switches(serving: Serving) -> int:
    found = len(serving.chain.switches())
    close_databases()
    return found


def live_through(serving: Serving, count: int, seed: int) -> int:
    """Switch at random until there were so many switches; how many processes were killed."""
    chance, killed = random.Random(seed), 0

    def switch_on(first: int) -> None:
        for number in range(1000):
            switch_at_random(serving, 1000 * first + number)

    while switches(serving) < count:
        killed += 1
        child = in_child(lambda first=killed: switch_on(seed + first))  # type: ignore[misc]
        time.sleep(chance.uniform(0.05, 1.5))
        os.kill(there(child.pid), signal.SIGKILL)
        child.join()
        assert child.exitcode == -signal.SIGKILL, "it ended by itself: see its traceback"
    return killed


def assert_never_torn(serving: Serving, reader: tuple[Read, Names], told: Path, count: int) -> None:
    publish(serving, serving.chain.windows()[-1])
    close_databases()
    over = FORK.Event()

    def watch() -> None:
        told.write_text(json.dumps(poll(*reader, POLL_SECONDS, over.is_set)))

    watcher = in_child(watch)
    killed = live_through(serving, count, seed=count)
    end = in_child(serving.path.bring_up)
    end.join()
    over.set()
    watcher.join()
    looks, wrong = json.loads(told.read_text())
    assert (watcher.exitcode, end.exitcode, wrong) == (0, 0, [])
    assert (looks > count, killed > 0) == (True, True)
    current = json.loads(there(reader[0]("current.json")))
    facts: dict[str, Any] = there(serving.facts())
    assert {name: current[name] for name in facts.keys() & current.keys()} == {
        name: facts[name] for name in facts.keys() & current.keys()
    }
    assert str(facts["path"]).endswith(f"/{current['integer']}")
    close_databases()


COUNTS = [15, pytest.param(200, marks=pytest.mark.chaos)]


@pytest.mark.guarantee(
    "processes that publish, roll back, pin and unpin are killed at any moment",
    "nothing; whoever reads the serving path finds one whole model after the other",
)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", COUNTS)
def test_a_folder_is_never_torn(tmp_path: Path, count: int) -> None:
    reader = folder_reader(tmp_path / "exports")
    assert_never_torn(serving_line(tmp_path, "exports"), reader, tmp_path / "told.json", count)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", COUNTS)
def test_a_bucket_is_never_torn(
    tmp_path: Path, count: int, s3_server: S3Server, new_s3_address: Callable[[], str]
) -> None:
    address = new_s3_address()
    reader = bucket_reader(s3_server.client, urlsplit(address).netloc, "some/folder")
    assert_never_torn(serving_line(tmp_path, address), reader, tmp_path / "told.json", count)
