"""Jobs without processes, for tests of what is decided, counted and told rather than of processes.

tests/integration/test_line_in_process.py shows that they leave what real processes leave.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from forebay.executors.job import submit
from forebay.executors.supervisor import supervisor
from forebay.executors.trainer import loop
from support.sequences.live_reader import LiveReader
from support.whole_life.in_process import run_jobs_here


@pytest.fixture
def jobs_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands that are called in this process run the jobs that they submit in it too."""
    handlers = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    # What `run_jobs_here` replaces for good is put back.
    monkeypatch.setattr(loop, "RemoteReader", loop.RemoteReader)
    monkeypatch.setattr(submit, "_start", submit._start)
    monkeypatch.setattr(supervisor, "_TICK_SECONDS", supervisor._TICK_SECONDS)
    monkeypatch.setattr(os, "fsync", os.fsync)
    run_jobs_here(LiveReader)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
