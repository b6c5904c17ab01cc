"""Stages of windows, each in a process that is forked from this one, which has imported them.

Run as `python -P -m forebay.stages FOLDER` by Airflow's tasks, in which `FOLDER` names where it
listens; see `forebay.operators.stage_process`.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from forebay.cli import command_named
from forebay.cli import main as run_command
from forebay.config.specs.datasets import time_zones
from forebay.config.specs.registry import kind_names
from forebay.system.files.locks import is_held
from forebay.system.files.private_socket import lock_of
from forebay.system.processes.fork_server import serve

IDLE_SECONDS = 300.0
_INSTALLED: list[int] = []
_LEFT_SECONDS = 86_400.0
_IMPORTED = (
    "forebay.datatasks.sources.iceberg.kind",
    "forebay.datatasks.sources.kafka.kind",
    "forebay.datatasks.sources.log.kind",
    "forebay.datatasks.sources.parquet.kind",
    "forebay.datatasks.sources.records.kind",
    "forebay.commands.windows.stage",
    "forebay.executors.stages.evaluate",
    "forebay.executors.stages.plan",
    "forebay.executors.stages.publish",
    "forebay.executors.stages.source",
    "forebay.executors.stages.submit",
    "forebay.datatasks.planning.open_source",
    "forebay.home.database.sqlite",
    "pyarrow.parquet",
    "sqlalchemy.dialects.sqlite",
)


def installed() -> list[int]:
    """When packages were last installed or removed: what was found out before may be wrong."""
    return [each.stat().st_mtime_ns for each in map(Path, sys.path) if each.is_dir()]


def run(arguments: Sequence[str]) -> int:
    """One call: a command line of `forebay`, without that word."""
    if installed() != _INSTALLED:
        again = [sys.executable, "-P", "-m", "forebay", *arguments]
        os.execv(sys.executable, again)  # noqa: S606 - it is this very program
    sys.argv = ["forebay", *arguments]
    run_command()
    return 0


def main() -> None:
    from forebay.executors.arrow_start import start_arrow

    start_arrow()
    for name in _IMPORTED:
        import_module(name)
    # What each call would find out anew.
    kind_names()
    time_zones()
    command_named("stage")
    folder = Path(sys.argv[1])
    _remove_left(folder)
    _INSTALLED[:] = installed()
    serve(folder, run, IDLE_SECONDS, lambda: installed() == _INSTALLED)


def _remove_left(folder: Path) -> None:
    """Remove folders beside this one whose processes were killed a day ago or earlier."""
    for other in folder.parent.iterdir():
        with suppress(FileNotFoundError):  # another one removes it at this moment
            is_old = time.time() - other.stat().st_mtime > _LEFT_SECONDS
            if is_old and not is_held(lock_of(other).path):
                shutil.rmtree(other)


if __name__ == "__main__":
    main()
