"""Runs one component, as another user if one is given; it ends with the keeper.

Run by the keeper as `python -P -m forebay.embedded.launch`. It becomes the component, so it imports
nothing slow.
"""

from __future__ import annotations

import argparse
import gc
import os
import runpy
import signal
import socket
import sys
import threading
from importlib import import_module
from typing import Any

from forebay.system.processes.parent import die_with_parent

KEEPER_PID_NAME = "FOREBAY_KEEPER_PID"
SCHEDULER = "scheduler"
# What each task imports: tasks are forked from what the scheduler forks, ten for each window.
IMPORTED_BY_TASKS = "forebay.dags.factory"
_KEEPER_ENDED = 4
_NOT_STARTED = 3  # as uvicorn itself does
# Longer than a start of the API server while other programs are busy too.
GC_PAUSE_SECONDS = 60.0


def main(arguments: list[str] | None = None) -> None:
    """Become the command after `--`."""
    parser = argparse.ArgumentParser(prog="forebay.embedded.launch")
    parser.add_argument("--end-signal", type=int, default=signal.SIGKILL)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--listening", type=int)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(arguments)
    if asked.uid is not None:
        os.setgroups([])
        os.setresgid(asked.gid, asked.gid, asked.gid)
        os.setresuid(asked.uid, asked.uid, asked.uid)
    # After the change of user, which cancels the request to the kernel.
    die_with_parent(asked.end_signal)
    if os.environ.get(KEEPER_PID_NAME) != str(os.getppid()):
        sys.stderr.write("the keeper ended while this component started\n")
        raise SystemExit(_KEEPER_ENDED)
    if asked.in_process:
        if asked.listening is not None:  # the API server
            collect_garbage_later()
            accept_on(socket.socket(fileno=asked.listening))
        if asked.command[0] == SCHEDULER:
            import_module(IMPORTED_BY_TASKS)
        sys.argv = ["airflow", *asked.command]
        runpy.run_module("airflow", run_name="__main__", alter_sys=True)
    else:
        os.execv(asked.command[0], asked.command)  # noqa: S606 - no shell is wanted


def accept_on(listening: socket.socket) -> None:
    """Make Airflow's server accept connections on a socket that the keeper holds open.

    Airflow can only pass host and port to uvicorn; but a port that is free whenever the server ends
    could be taken by another user before the next one starts.
    """
    import uvicorn

    listening.set_inheritable(False)  # not for what the server starts

    def run(app: Any, **options: Any) -> None:  # noqa: ANN401 - uvicorn takes many kinds
        config = uvicorn.Config(app, **options)
        config.load_app()
        server = uvicorn.Server(config)
        server.run(sockets=[listening])
        if not server.started:
            raise SystemExit(_NOT_STARTED)

    uvicorn.run = run


def collect_garbage_later() -> None:
    """For a command that creates millions of objects while it starts, and keeps them all.

    Looking through them for garbage takes a fifth to a quarter of the API server's start.
    """
    gc.disable()
    later = threading.Timer(GC_PAUSE_SECONDS, _collect_garbage)
    later.daemon = True
    later.start()


def _collect_garbage() -> None:
    gc.freeze()  # what exists by now stays
    gc.enable()


if __name__ == "__main__":
    main()
