"""Runs of benchmarks in processes of their own, each kept in a file when it is done."""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

from learning_figures import Run


class Task(Protocol):
    @property
    def file_name(self) -> str: ...


AnyTask = TypeVar("AnyTask", bound=Task)


def file_name_of(regime: str, seed: int) -> str:
    words = "".join(each if each.isalnum() else "-" for each in regime)
    return f"{words}-{seed}.json"


def finished_runs(folder: Path) -> list[Run]:
    """Runs that are kept in a folder, by seed."""
    found = [_read(file) for file in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda run: run.seed)


def run_all(
    job: Callable[[AnyTask], Run], tasks: Sequence[AnyTask], keep: Path | None, processes: int
) -> list[Run]:
    """Runs of all tasks. keep: what is in this folder is not run again."""
    began = time.monotonic()
    runs, missing = [], []
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for task in tasks:
            file = keep / task.file_name if keep else None
            if file is not None and file.is_file():
                runs.append(_read(file))
            else:
                missing.append((task, file, pool.submit(job, task)))
        for task, file, future in missing:
            runs.append(future.result())
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(runs[-1]._asdict()))
            print(f"{time.monotonic() - began:6.0f} s  {task.file_name}", file=sys.stderr)
    return runs


def _read(file: Path) -> Run:
    return Run(**json.loads(file.read_text()))
