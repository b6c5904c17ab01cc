"""Bounds the size of logs of processes that never reopen them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

BYTES_MAX = 10_000_000
PARSER_LOG_DAYS = 7
_DAY_SECONDS = 86_400.0


def rotate(path: Path, bytes_max: int = BYTES_MAX) -> bool:
    """Move the content of a log to `<name>.1` when it is too long; returns whether it was.

    It is copied and then emptied, because a process that appends to its standard output keeps
    writing to the same file. Lines written between the two steps are lost, a few at most.
    """
    if path.stat().st_size <= bytes_max:
        return False
    shutil.copyfile(path, path.with_name(f"{path.name}.1"))
    with path.open("r+b") as log:
        log.truncate(0)
    return True


def drop_parser_logs(folder: Path, now: float | None = None) -> None:
    """Remove what the DAG processor wrote about each file more than a week ago.

    Logs of tasks stay: they belong to their runs.
    """
    oldest = (time.time() if now is None else now) - PARSER_LOG_DAYS * _DAY_SECONDS
    for day in folder.glob("[0-9]*") if folder.is_dir() else ():
        if day.is_dir() and day.stat().st_mtime < oldest:
            shutil.rmtree(day)
