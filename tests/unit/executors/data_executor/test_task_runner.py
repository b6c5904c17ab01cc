"""How a runner reports what it cannot read."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.letters import task
from support.there import there
from support.toy_roles.jobs import eventually

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.memory.kind import MemoryKind
from forebay.executors.data_executor.chunk_rows import PendingLetters
from forebay.executors.data_executor.task_runner import IDLE_MAX, Outcome, RunnerThreads, TaskRunner
from forebay.executors.job.measures import PhaseSeconds
from forebay.executors.link.local import LocalLink
from forebay.executors.poison.examination import Examiner
from forebay.executors.wire.messages import Grant
from forebay.testing.scripted_source import SCRIPTS, Abort, ScriptedSource


class _Readers:
    def __init__(self) -> None:
        fields = {"name": "clicks", "kind": "memory", "columns": {"n": "int"}}
        self.names = ["clicks"]
        self._spec = SourceSpec.model_validate(fields)

    def spec(self, _name: str) -> SourceSpec:
        return self._spec

    def columns(self, _name: str) -> list[str]:
        return ["n"]

    @contextmanager
    def source(self, _name: str) -> Iterator[ScriptedSource]:
        SCRIPTS["clicks"] = [Abort(MemoryError())]
        yield ScriptedSource(self._spec, MemoryKind.Options(table="clicks"), Path())


def test_to_have_no_memory_for_rows_is_bad_data_with_its_place(tmp_path: Path) -> None:
    ended: list[Outcome] = []
    queue: Any = SimpleNamespace(chunk_rows=lambda _: 10, reserve=lambda *_: True)
    readers: Any = _Readers()
    grant = Grant(task=task(), attempt=1, failures=0, progress=None)
    decoding = threading.Semaphore()
    letters, link = PendingLetters({}), LocalLink(tmp_path, "data")
    examiner = Examiner(link, lambda *_: None, 60.0)
    threads, phases = RunnerThreads("reader"), PhaseSeconds()
    parts: Any = (readers, queue, letters, examiner, decoding, threads, phases)
    TaskRunner(grant, *parts, ended.append)._run()
    (outcome,) = ended
    failure = there(outcome.failure)
    assert failure.exit_code == 3
    assert failure.message == (
        "source 'clicks', rows from table clicks, row 0 on: not enough memory to decode them "
        "(write smaller batches of rows, or give the role more memory)"
    )


SECONDS = 20.0


def living(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


def test_one_thread_does_one_piece_of_work_after_the_other() -> None:
    threads = RunnerThreads("one-after-the-other")
    found: queue.Queue[int] = queue.Queue()
    seen = set()
    for _ in range(5):
        threads.start(lambda: found.put(threading.get_ident()))
        seen.add(found.get(timeout=SECONDS))
        eventually(lambda: threads._idle == 1)
    assert len(seen) == 1
    threads.close()
    eventually(lambda: living("one-after-the-other") == 0)


def test_no_work_waits_for_other_work() -> None:
    threads, together = RunnerThreads("side-by-side"), threading.Barrier(IDLE_MAX + 5)
    for _ in range(IDLE_MAX + 4):
        threads.start(lambda: together.wait(SECONDS))  # type: ignore[arg-type,return-value]
    together.wait(SECONDS)  # all of them run now, or this breaks
    eventually(lambda: living("side-by-side") == IDLE_MAX)
    threads.close()
    eventually(lambda: living("side-by-side") == 0)


def test_work_at_the_same_moment_gets_threads_of_its_own() -> None:
    threads = RunnerThreads("at-once")
    for _ in range(20):
        together = threading.Barrier(4)
        for _ in range(3):
            threads.start(lambda: together.wait(SECONDS))  # type: ignore[arg-type,return-value]  # noqa: B023
        together.wait(SECONDS)
    threads.close()
    eventually(lambda: living("at-once") == 0)


def test_who_closes_lets_work_come_to_its_end() -> None:
    threads, may_end, ended = RunnerThreads("closing"), threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(SECONDS)
        ended.set()

    threads.start(work)
    threads.close()
    may_end.set()
    assert ended.wait(SECONDS)
    eventually(lambda: living("closing") == 0)
