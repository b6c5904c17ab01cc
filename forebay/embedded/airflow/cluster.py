"""Starts, stops and inspects the embedded Airflow of one home."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from forebay.embedded.airflow.http import Endpoint
from forebay.embedded.airflow.jobs import cancel_jobs, left_processes
from forebay.embedded.airflow.settings import COMPONENT_NAME, component_environment
from forebay.embedded.layout import Layout
from forebay.embedded.postgres.account import make_account
from forebay.embedded.postgres.place import database_place, remove_database
from forebay.embedded.secret_files import new_password, read_password
from forebay.embedded.state import ClusterStatus, ComponentStatus, read_status
from forebay.errors import InfrastructureError, UsageError
from forebay.home.paths import Home
from forebay.system.extras import require_extra
from forebay.system.files.locks import is_held, locked
from forebay.system.processes.identity import kill_all

KEEPER_COMMAND = (sys.executable, "-P", "-m", "forebay.embedded.keeper")
KEEPER = "keeper"
START_SECONDS = 300.0
STOP_SECONDS = 120.0
_POLL_SECONDS = 0.1


class Embedded:
    """The embedded Airflow of one home.

    config_dirs: folders with pipelines/ and sources/; their pipelines become DAGs.
    """

    def __init__(self, home: Home, config_dirs: Sequence[Path] = ()) -> None:
        self.home = home
        self.layout = Layout(home)
        self._config_dirs = [path.absolute() for path in config_dirs]

    def start(
        self, timeout_seconds: float = START_SECONDS, progress: Callable[[str], None] | None = None
    ) -> Endpoint:
        """Start it, unless it runs already. It outlives the caller.

        After that many seconds it is abandoned and stopped; `progress` gets what is being started.

        Raises:
            MissingExtraError: when Airflow or PostgreSQL is not installed.
            UsageError: when it already runs with other configuration folders.
            InfrastructureError: when it does not start.
        """
        require_extra("embedded")
        deadline = time.monotonic() + timeout_seconds
        self.layout.create()
        with locked(self.layout.start_lock, timeout_seconds):
            status = read_status(self.layout)
            if status is not None and (status.over or status.state == "stopping"):
                self._wait(lambda: not is_held(self.layout.keeper_lock), deadline, "the keeper")
                status = read_status(self.layout)
            if not is_held(self.layout.keeper_lock):
                if not self.layout.passwords.exists():
                    new_password(self.layout)
                if os.geteuid() == 0 and (said := make_account(database_place(self.layout).data)):
                    sys.stderr.write(f"{said}\n")  # here: nobody reads the keeper's output
                self._start_keeper(deadline)
            elif status is not None:
                self._require_same(status)
            self._await_start(deadline, progress)
        return self.endpoint()

    def endpoint(self) -> Endpoint:
        """Where it listens.

        Raises:
            InfrastructureError: when it does not run.
        """
        status = read_status(self.layout)
        if status is None or status.over:
            raise InfrastructureError(
                f"no Airflow is running for {self.home.root}: start it with `forebay up`"
            )
        return Endpoint(status.url, status.user, read_password(self.layout))

    def state(self) -> ClusterStatus | None:
        """The state of the whole; None if it never ran."""
        return read_status(self.layout)

    def status(self) -> list[ComponentStatus]:
        state = self.state()
        if state is None:
            return []
        if not state.over:
            return list(state.components)
        gone = {"pid": None, "state": "stopped", "started_at": None}
        return [one.model_copy(update=gone) for one in state.components]

    def stop(self, timeout_seconds: float = STOP_SECONDS) -> list[str]:
        """Stop it, and every job that its tasks started; returns once nothing is left.

        Returns ids of the jobs that were cancelled: their tasks continue after the next start.

        Raises:
            InfrastructureError: when something does not end.
        """
        deadline = time.monotonic() + timeout_seconds
        if not self.layout.root.exists():
            return self._stop(deadline)  # deleted, maybe under a running Airflow
        with locked(self.layout.start_lock, timeout_seconds):
            return self._stop(deadline)

    def remove_database(self) -> None:
        """Remove the database, and with it the history of all runs. Only while Airflow is down."""
        if is_held(self.layout.keeper_lock):
            raise UsageError("Airflow is running: stop it with `forebay down`")
        remove_database(database_place(self.layout))

    def _stop(self, deadline: float) -> list[str]:
        keepers = left_processes(self.layout, **{COMPONENT_NAME: KEEPER})
        for keeper in keepers:
            keeper.terminate()
        while any(keeper.alive() for keeper in keepers) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        ended = read_status(self.layout) if keepers else None
        # Whatever is left by a keeper that died or did not end in time, including that keeper.
        kill_all(left_processes(self.layout))
        cancelled = list(ended.cancelled_jobs) if ended is not None else []
        return sorted({*cancelled, *cancel_jobs(self.layout)})

    def _require_same(self, status: ClusterStatus) -> None:
        if status.config_dirs != [str(path) for path in self._config_dirs]:
            raise UsageError(
                f"Airflow is running with configuration {', '.join(status.config_dirs) or '(none)'}"
                ": stop it with `forebay down`"
            )

    def _start_keeper(self, deadline: float) -> None:
        options = [word for path in self._config_dirs for word in ("--config", str(path))]
        with self.layout.log("keeper").open("ab") as log:
            process = subprocess.Popen(
                [*KEEPER_COMMAND, "--home", str(self.home.root.absolute()), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=component_environment(self.layout, KEEPER),
                cwd="/",
                start_new_session=True,
            )
        # The starting process may live on: the keeper must not stay a zombie below it.
        threading.Thread(target=process.wait, name="reap-keeper", daemon=True).start()
        self._wait(lambda: self._speaks(process), deadline, "the keeper")

    def _speaks(self, process: subprocess.Popen[bytes]) -> bool:
        status = read_status(self.layout)
        if status is not None and status.keeper_pid == process.pid:
            return True
        if process.poll() is not None:
            raise InfrastructureError(f"the keeper did not start: see {self.layout.log('keeper')}")
        return False

    def _await_start(self, deadline: float, progress: Callable[[str], None] | None) -> None:
        told = ""
        try:
            while (status := read_status(self.layout)) is not None and status.state == "starting":
                if progress is not None and status.doing != told:
                    progress(status.doing)
                    told = status.doing
                if time.monotonic() > deadline:
                    raise InfrastructureError(
                        f"Airflow did not start in time (step: {status.doing}): see the logs in "
                        f"{self.layout.log('any').parent}"
                    )
                time.sleep(_POLL_SECONDS)
        except BaseException:
            self._stop(time.monotonic() + STOP_SECONDS)
            raise
        if status is None or status.state != "running":
            lost = status is not None and status.state == "lost"
            why = f"its keeper died: see {self.layout.log('keeper')}" if lost else "it was stopped"
            said = status.error if status is not None else None
            raise InfrastructureError(f"Airflow did not start: {said or why}")

    def _wait(self, condition: Callable[[], bool], deadline: float, name: str) -> None:
        while not condition():
            if time.monotonic() > deadline:
                raise InfrastructureError(
                    f"{name} did not answer in time: see {self.layout.log('keeper')}"
                )
            time.sleep(_POLL_SECONDS)
