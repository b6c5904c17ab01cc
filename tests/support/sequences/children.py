"""Operations in children of this process: each may be killed at any of its points.

The parent opens no database and starts no thread, so that it can be forked at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, Self

from forebay.datatasks.planning import planner as planning
from support.sequences.operations import Ended, attempt
from support.whole_life.faults import Faults, die
from support.whole_life.in_process import code_of, forked, parse_footers_here, run_jobs_here

KILLED = -9


class _Inline:
    """A pool whose only thread is the caller's: the order of operations is always the same."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*arguments))
        return done


def work_here() -> None:
    """From now on jobs and plans of this process start no other one, and no thread."""
    run_jobs_here()
    parse_footers_here()
    planning.ThreadPoolExecutor = _Inline  # type: ignore[misc,assignment]


def in_child(work: Callable[[], Any], dies_at: int | None = None) -> Ended:
    """Do this in a child, which dies before its operation number `dies_at`."""
    reading, writing = os.pipe()

    def here() -> None:
        os.close(reading)
        work_here()
        Faults({} if dies_at is None else {dies_at: die}).install()
        told = json.dumps(asdict(attempt(work)), default=str)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(told)

    pid = forked(here)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    code = code_of(pid)
    if code == KILLED and dies_at is not None:
        return Ended(killed=True)
    assert code == 0, f"it ended with {code}"
    return Ended(**json.loads(told))
