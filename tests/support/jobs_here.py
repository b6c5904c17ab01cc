"""Jobs and footers without processes, where a test is of what is decided, counted and told.

They run on the plane `inline`, whatever their pipelines say. tests/integration/test_inline.py shows
that they leave what real processes leave.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from forebay.datatasks.sources.common.cautious.child import ReadingChild
from forebay.datatasks.sources.parquet import footer_reader
from forebay.executors.job.host import LocalJob
from forebay.executors.job.request import JobRequest
from forebay.executors.supervisor import supervisor
from forebay.executors.supervisor.inline import InlinePlane, start_here
from support.whole_life.in_process import parse_footers_here

# Each plan that meets new Parquet files starts a child, which takes longer than most tests. Those
# that are processes of their own start real ones.
parse_footers_here()


@pytest.fixture
def footer_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of the children themselves."""
    monkeypatch.setattr(footer_reader, "ReadingChild", ReadingChild)


def _start(held: LocalJob, request: JobRequest, command: Sequence[str]) -> Any:
    del request, command
    started = start_here(held.folder.path, held.lock)
    held.lock.leave()
    return started


@contextmanager
def jobs_in_this_process() -> Iterator[None]:
    """Commands that are called in this process run the jobs that they submit in it too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalJob, "start", _start)
        patch.setattr(supervisor, "make_plane", lambda _name, job: InlinePlane(job))
        # The page cache outlives a process.
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture
def jobs_here() -> Iterator[None]:
    """For a test; what its fixtures of larger scopes run comes before it, in processes."""
    with jobs_in_this_process():
        yield
