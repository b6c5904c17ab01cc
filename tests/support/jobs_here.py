"""Jobs without processes, for tests of what is decided, counted and told rather than of processes.

tests/integration/test_line_in_process.py shows that they leave what real processes leave.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.whole_life.in_process import run_jobs_here


@contextmanager
def jobs_in_this_process() -> Iterator[None]:
    """Commands that are called in this process run the jobs that they submit in it too."""
    handlers = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.MonkeyPatch.context() as patch:
            run_jobs_here(patch.setattr)
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@pytest.fixture
def jobs_here() -> Iterator[None]:
    """For a test; what its fixtures of larger scopes run comes before it, in processes."""
    with jobs_in_this_process():
        yield
