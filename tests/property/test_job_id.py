"""Job ids: two different jobs never share one, whatever pipelines and lines are called."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.errors import UsageError
from forebay.home.job_id import range_job_id, window_job_id
from forebay.system.names import JOB_ID_PATTERN, NAME_PATTERN

# Few letters, so that parts often run into each other where something is wrong.
NAMES = st.one_of(
    st.from_regex(r"\A[ae][-_0-2aeg]{0,6}\Z"), st.from_regex(NAME_PATTERN.replace("$", r"\Z"))
)
KEYS = st.builds(
    lambda size, hours: WindowGrid(size).at(START + timedelta(hours=hours)).key,
    st.sampled_from(WindowSize),
    st.integers(0, 30),
)
START = datetime(2026, 3, 1, tzinfo=UTC)
WINDOW_JOBS = st.tuples(NAMES, NAMES, KEYS, st.integers(1, 10**9))
RANGE_JOBS = st.tuples(NAMES, NAMES, KEYS, KEYS, st.booleans())
JOBS = st.one_of(WINDOW_JOBS, RANGE_JOBS)
JobParts = tuple[str, str, str, int] | tuple[str, str, str, str, bool]


def id_of(job: JobParts) -> str:
    if len(job) == 4:
        return window_job_id(*job)
    pipeline, line, first, last, reprocess = job
    return range_job_id(pipeline, line, first, last, reprocess=reprocess)


def read_back(job_id: str) -> JobParts:
    pipeline, line, first, *rest = job_id.split(".")
    if rest[0]:
        return pipeline, line, first, int(rest[0].removeprefix("g"))
    return pipeline, line, first, rest[1], rest[2:] == ["reprocess"]


@given(JOBS)
def test_a_job_is_known_by_its_id(job: JobParts) -> None:
    """So no two jobs share one; and it is one word in a shell, and one folder."""
    made = id_of(job)
    assert read_back(made) == job
    assert re.fullmatch(JOB_ID_PATTERN, made)
    assert re.fullmatch(r"[A-Za-z0-9._-]+", made)


@pytest.mark.parametrize(
    ("pipeline", "line", "window"),
    [
        ("ads.eu", "main", "2026-03-01"),
        ("ads", "ma/in", "2026-03-01"),
        ("ads", "", "2026-03-01"),
        ("ads", "main\n", "2026-03-01"),
        ("a" * 64, "main", "2026-03-01"),
        ("ads", "main", "2026-03-01.g1"),
        ("ads", "main", "../2026-03-01"),
    ],
)
def test_what_is_no_name_is_refused(pipeline: str, line: str, window: str) -> None:
    with pytest.raises(UsageError, match="cannot be part of a job id"):
        window_job_id(pipeline, line, window, 1)
    with pytest.raises(UsageError, match="cannot be part of a job id"):
        range_job_id(pipeline, line, window, window)


def test_an_id_that_would_be_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="too long for a job id"):
        window_job_id("a" * 63, "b" * 63, "2026-03-01", 10**70)
