"""The keeper: one process that owns PostgreSQL and Airflow's components, and ends with them.

Run as `python -m forebay.embedded.keeper --home DIR --config DIR…` by `Embedded.start`.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from forebay.embedded.airflow import components as parts
from forebay.embedded.airflow.jobs import cancel_jobs, left_processes
from forebay.embedded.airflow.warm import Warming
from forebay.embedded.keeper.component_group import ComponentGroup
from forebay.embedded.keeper.followers import Followers
from forebay.embedded.keeper.startup import Startup
from forebay.embedded.keeper.watch import ConfigWatch
from forebay.embedded.layout import Layout
from forebay.embedded.log_files import drop_parser_logs, rotate
from forebay.embedded.ports import LOOPBACK, keep_port
from forebay.embedded.secret_files import USER
from forebay.embedded.state import ClusterStatus, read_status, write_status
from forebay.errors import InfrastructureError
from forebay.home.paths import Home
from forebay.system.files.locks import FileLock
from forebay.system.output.process_log import set_up_logging
from forebay.system.output.redaction import redacted
from forebay.system.processes.ends import when_told_to_end
from forebay.system.processes.identity import kill_all
from forebay.system.processes.parent import adopt_orphans

TICK_SECONDS = 0.25
LOOK_SECONDS = 1.0
TIDY_SECONDS = 30.0
SYNC_SECONDS = 90.0
# Airflow's components take a second or two; the triggerer waits longer for its triggers.
STOP_SECONDS = 8.0
DATABASE_STOP_SECONDS = 20.0
_LOCK_SECONDS = 2.0
_LOG = logging.getLogger(__name__)


class _Stopped(Exception):  # noqa: N818 - not an error: a stop was requested
    """The keeper was told to stop."""


class Keeper:
    """Starts everything, keeps it running, stops everything."""

    def __init__(self, layout: Layout, config_dirs: Sequence[Path]) -> None:
        self._layout = layout
        self._components = ComponentGroup(layout)
        self._watch = ConfigWatch(layout, config_dirs, self._components.launch)
        self._followers = Followers(layout, config_dirs, self._components)
        self._told_to_stop = False
        self._warming: Warming | None = None
        self._looked = self._tidied = 0.0
        before = read_status(layout)
        # Held until this process ends, whatever happens to the API server meanwhile.
        self._listening = keep_port(urlsplit(before.url).port if before is not None else None)
        self._status = ClusterStatus(
            state="starting",
            url=f"http://{LOOPBACK}:{self._listening.getsockname()[1]}",
            user=USER,
            keeper_pid=os.getpid(),
            config_dirs=[str(path) for path in config_dirs],
            started_at=datetime.now(UTC),
        )
        write_status(layout, self._status)

    def run(self) -> int:
        """Run until told to stop; returns the exit code."""
        when_told_to_end(self._stop_later)
        adopt_orphans()
        try:
            self._start()
            self._tell(state="running", doing="")
            while True:
                self._tick()
                time.sleep(TICK_SECONDS)
        except _Stopped:
            _LOG.info("told to stop")
        except Exception as error:  # noqa: BLE001 - it is reported, and everything ends
            _LOG.exception("failed in this step: %s", self._status.doing or "keeping it running")
            self._tell(error=redacted(str(error)))
        finally:
            self._end()
        return 0 if self._status.error is None else InfrastructureError.exit_code

    def _start(self) -> None:
        if left := left_processes(self._layout):
            _LOG.info("ending %d processes of an earlier keeper", len(left))
            kill_all(left)
        self._watch.remove_others()
        startup = Startup(self._layout, self._components, self._listening, self._wait)
        steps = startup.steps(self._status.url)
        steps["dag files"] = self._await_dag_files
        for name, step in steps.items():
            self._tell(doing=name)
            began = time.monotonic()
            step()
            seconds = round(time.monotonic() - began, 2)
            self._tell(seconds={**self._status.seconds, name: seconds})

    def _await_dag_files(self) -> None:
        """They are written from the first tick on, in parallel with everything else."""
        self._wait(lambda: self._watch.settled, SYNC_SECONDS, "dags sync")

    def _wait(self, condition: Callable[[], bool], seconds: float, name: str) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            self._tick()
            for failed in self._components.given_up():
                raise self._components.failure(failed, "keeps ending")
            if time.monotonic() > deadline:
                raise self._components.failure(name, f"is not ready after {seconds:g} s")
            time.sleep(TICK_SECONDS / 5)

    def _tick(self) -> None:
        if self._told_to_stop:
            raise _Stopped
        if parts.API_SERVER in self._components.tick():
            # A new API server must have built what tasks need before they time out.
            if self._warming is not None:
                self._warming.given_up.set()
            self._warming = Warming(self._status.url)
        try:
            self._keep_house(time.monotonic())
        except (OSError, InfrastructureError) as error:
            # A full disk, say: the components continue as long as they can.
            _LOG.warning("cannot tidy up logs or write the status: %s", error)

    def _keep_house(self, now: float) -> None:
        if now - self._looked > LOOK_SECONDS:
            self._looked = now
            self._watch.look()
            if self._status.state == "running" and self._watch.settled:
                self._followers.look()
        if now - self._tidied > TIDY_SECONDS:
            self._tidied = now
            for path in self._layout.log("any").parent.glob("*.log"):
                rotate(path)
            drop_parser_logs(self._layout.logs / "dag_processor")
        self._tell(sync_error=self._watch.error)

    def _end(self) -> None:
        """Stop everything, tasks before what they need. One failure does not stop the rest."""
        self._tell(state="stopping", doing="stop")
        stop = self._components.stop
        with ExitStack() as last_first:
            last_first.callback(self._tell_the_end)
            last_first.callback(lambda: kill_all(left_processes(self._layout)))
            last_first.callback(stop, [parts.DATABASE], DATABASE_STOP_SECONDS)
            last_first.callback(stop, [parts.DAG_PROCESSOR, parts.API_SERVER], STOP_SECONDS)
            last_first.callback(lambda: self._tell(cancelled_jobs=cancel_jobs(self._layout)))
            last_first.callback(stop, [parts.SCHEDULER, parts.TRIGGERER], STOP_SECONDS)
            last_first.callback(self._followers.stop)

    def _tell_the_end(self) -> None:
        self._tell(state="stopped" if self._status.error is None else "failed", doing="")

    def _tell(self, **changes: Any) -> None:
        changes["components"] = self._components.statuses()
        status = self._status.model_copy(update=changes)
        if status != self._status:
            self._status = status
            write_status(self._layout, status)

    def _stop_later(self, _number: int, _frame: FrameType | None) -> None:
        self._told_to_stop = True


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="forebay.embedded.keeper")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--config", type=Path, action="append", default=[])
    asked = parser.parse_args(arguments)
    set_up_logging("keeper")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request
    layout = Layout(Home(asked.home))
    layout.create()
    # Never released here: the kernel does it once this process is gone, so if the lock is free, no
    # keeper is left either.
    lock = FileLock(layout.keeper_lock)
    if not lock.acquire(_LOCK_SECONDS):
        _LOG.info("another keeper is running")
        return
    raise SystemExit(Keeper(layout, asked.config).run())
