"""Operations in children of this process: each may be killed at any of its points.

The parent opens no database and starts no thread, so that it can be forked at any time.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, Self

from forebay.datatasks.planning import planner as planning
from support.sequences.live_reader import LiveReader
from support.sequences.operations import Ended, attempt
from support.whole_life.faults import Faults, die
from support.whole_life.in_process import run_jobs_here

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
    run_jobs_here(LiveReader)
    planning.ThreadPoolExecutor = _Inline  # type: ignore[misc,assignment]


def in_child(work: Callable[[], Any], dies_at: int | None = None) -> Ended:
    """Do this in a child, which dies before its operation number `dies_at`."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _work(work, dies_at, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == KILLED and dies_at is not None:
        return Ended(killed=True)
    assert code == 0, f"it ended with {code}: {told.decode()}"
    return Ended(**json.loads(told))


def _work(work: Callable[[], Any], dies_at: int | None, writing: int) -> None:
    code, told = 1, b""
    try:
        work_here()
        Faults({} if dies_at is None else {dies_at: die}).install()
        told, code = json.dumps(asdict(attempt(work)), default=str).encode(), 0
    except BaseException:  # noqa: BLE001 - a child of a fork must not return
        told = traceback.format_exc().encode()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(told)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
