"""Jobs and footers without processes, where a test is of what is decided, counted and told.

tests/integration/test_line_in_process.py shows that they leave what real processes leave.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from forebay.datatasks.sources.common.cautious.child import ReadingChild
from forebay.datatasks.sources.parquet import footer_reader
from support.whole_life.in_process import parse_footers_here, run_jobs_here

# Each plan that meets new Parquet files starts a child, which takes longer than most tests. Those
# that are processes of their own start real ones.
parse_footers_here()


@pytest.fixture
def footer_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of the children themselves."""
    monkeypatch.setattr(footer_reader, "ReadingChild", ReadingChild)


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
