"""Jobs without processes, for tests of what is decided, counted and told rather than of processes.

tests/integration/test_line_in_process.py shows that they leave what real processes leave.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from support.sequences.live_reader import LiveReader
from support.whole_life.in_process import run_jobs_here


@pytest.fixture
def jobs_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands that are called in this process run the jobs that they submit in it too."""
    handlers = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    run_jobs_here(LiveReader, monkeypatch.setattr)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
