"""Job ids: made here only, so that two jobs never share one.

A job id names the job's folder. Its parts are separated by dots, which neither names nor window
keys contain: `ads.eu-main.2026-03-01.g1` is the job of one window, and
`ads.main.2026-03-01..2026-03-05` that of a range.
"""

from __future__ import annotations

from forebay.errors import UsageError
from forebay.system.names import NAME_RULE, is_job_id, is_name, is_window_key


def window_job_id(pipeline: str, line: str, window: str, generation: int) -> str:
    """The id of the job that trains one generation of one window.

    Raises:
        UsageError: when a part is not a name or not a window key.
    """
    return _joined(_line(pipeline, line), _window(window), f"g{generation}")


def range_job_id(
    pipeline: str, line: str, first: str, last: str, *, reprocess: bool = False
) -> str:
    """The id of the job that trains a range of windows; a reprocess of it is a different job.

    Raises:
        UsageError: when a part is not a name or not a window key.
    """
    windows = f"{_window(first)}..{_window(last)}"
    return _joined(_line(pipeline, line), windows, *(["reprocess"] if reprocess else []))


def line_of(job_id: str) -> tuple[str, str]:
    """Pipeline and line of a job that was named here."""
    pipeline, line, *_ = f"{job_id}.".split(".")
    return pipeline, line


def _line(pipeline: str, line: str) -> str:
    for name in (pipeline, line):
        if not is_name(name):
            raise UsageError(f"{name!r} cannot be part of a job id: {NAME_RULE}")
    return f"{pipeline}.{line}"


def _window(key: str) -> str:
    if not is_window_key(key):
        raise UsageError(f"{key!r} cannot be part of a job id: it is not a window key")
    return key


def _joined(*parts: str) -> str:
    job_id = ".".join(parts)
    if not is_job_id(job_id):
        raise UsageError(f"{job_id!r} is too long for a job id, or not a plain name")
    return job_id
