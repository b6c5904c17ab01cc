"""Threads that read tasks: kept for the next one, and none waits for another."""

from __future__ import annotations

import queue
import threading
import time

from forebay.executors.data_executor.task_runner import IDLE_MAX, RunnerThreads

SECONDS = 20.0


def living(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


def until(reached: object) -> None:
    deadline = time.monotonic() + SECONDS
    while not reached():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def test_one_thread_does_one_piece_of_work_after_the_other() -> None:
    threads = RunnerThreads("one-after-the-other")
    found: queue.Queue[int] = queue.Queue()
    seen = set()
    for _ in range(5):
        threads.start(lambda: found.put(threading.get_ident()))
        seen.add(found.get(timeout=SECONDS))
        until(lambda: threads._idle == 1)
    assert len(seen) == 1
    threads.close()
    until(lambda: living("one-after-the-other") == 0)


def test_no_work_waits_for_other_work() -> None:
    threads, together = RunnerThreads("side-by-side"), threading.Barrier(IDLE_MAX + 5)
    for _ in range(IDLE_MAX + 4):
        threads.start(lambda: together.wait(SECONDS))  # type: ignore[arg-type,return-value]
    together.wait(SECONDS)  # all of them run now, or this breaks
    until(lambda: living("side-by-side") == IDLE_MAX)
    threads.close()
    until(lambda: living("side-by-side") == 0)


def test_work_at_the_same_moment_gets_threads_of_its_own() -> None:
    threads = RunnerThreads("at-once")
    for _ in range(20):
        together = threading.Barrier(4)
        for _ in range(3):
            threads.start(lambda: together.wait(SECONDS))  # type: ignore[arg-type,return-value]  # noqa: B023
        together.wait(SECONDS)
    threads.close()
    until(lambda: living("at-once") == 0)


def test_who_closes_lets_work_come_to_its_end() -> None:
    threads, may_end, ended = RunnerThreads("closing"), threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(SECONDS)
        ended.set()

    threads.start(work)
    threads.close()
    may_end.set()
    assert ended.wait(SECONDS)
    until(lambda: living("closing") == 0)
