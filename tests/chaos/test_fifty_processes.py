"""Fifty processes plan, claim and finish windows of five pipelines at once.

On a slow disk, and beside others that keep every processor busy: whoever is woken gets one late.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.python_code import with_tests
from support.truth_rows import rows_of

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]
PROCESSES, PIPELINES = 50, 5
SECONDS = 20.0
WAIT_SECONDS_MAX = 5.0


@pytest.fixture
def _busy_processors() -> Iterator[None]:
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(len(os.sched_getaffinity(0)))]
    yield
    for each in busy:
        each.kill()
        each.wait()


@pytest.mark.usefixtures("_busy_processors")
def test_nothing_fails_waits_for_long_or_is_lost(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.crowd", str(tmp_path), str(PROCESSES), str(SECONDS)],
        env=with_tests(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == PROCESSES
    assert max(each["longest_seconds"] for each in told) < WAIT_SECONDS_MAX
    finished = sum(each["windows"] for each in told)
    assert finished >= PROCESSES, "each finished one at least"
    # Each update is there: a link of its own for each window and process, one claim per window.
    assert rows_of(tmp_path, "SELECT count(*) FROM links")[0][0] == finished
    assert rows_of(tmp_path, "SELECT count(*) FROM judgements")[0][0] == finished
    claims = rows_of(
        tmp_path,
        "SELECT pipeline, key, count(*) FROM requests JOIN windows w ON w.id = window_id "
        "GROUP BY pipeline, key",
    )
    assert {count for _, _, count in claims} == {1}
    plans = rows_of(tmp_path, "SELECT window_id, generation FROM plans")
    assert set(Counter(tuple(each) for each in plans).values()) == {1}
    assert {generation for _, generation in plans} == {1}
    assert len({pipeline for pipeline, _, _ in claims}) == PIPELINES
