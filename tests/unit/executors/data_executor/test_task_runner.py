"""How a runner reports what it cannot read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.letters import task
from support.there import there

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.memory.kind import MemoryKind
from forebay.executors.data_executor.task_runner import Outcome, RunnerThreads, TaskRunner
from forebay.executors.poison.examination import Examiner
from forebay.executors.window_files.dead_letters import DeadLetterWriter
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
    letters, examiner = DeadLetterWriter(tmp_path), Examiner(tmp_path, 0, tmp_path, 60.0)
    threads = RunnerThreads("reader")
    TaskRunner(grant, readers, queue, letters, examiner, decoding, threads, ended.append)._run()
    (outcome,) = ended
    failure = there(outcome.failure)
    assert failure.exit_code == 3
    assert failure.message == (
        "source 'clicks', rows from table clicks, row 0 on: not enough memory to decode them "
        "(write smaller batches of rows, or give the role more memory)"
    )
