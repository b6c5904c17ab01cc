"""An Airflow as somebody else runs it: own environment, own settings, own database, five processes.

Nothing of `forebay up` takes part.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from forebay.embedded.airflow.http import Endpoint
from forebay.embedded.ports import free_ports
from support.kills import is_alive
from support.postgres_server import serving

COMMAND_SECONDS = 240
START_SECONDS = 120
STOP_SECONDS = 20
PASSWORD = "a password of the user's"


@contextmanager
def database(home: Path) -> Iterator[str]:
    """An empty PostgreSQL; the address for SQLAlchemy without a driver."""
    with serving(home) as server:
        yield server.place.url


def wait_until(holds: Any, otherwise: str, seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.2)


def end(processes: list[subprocess.Popen[Any]], number: signal.Signals) -> None:
    """Ask processes to end, and their children with them; make those that do not."""
    living = [each for each in processes if is_alive(each.pid)]
    children = [c for each in living for c in psutil.Process(each.pid).children(recursive=True)]
    for process in living:
        process.send_signal(number)
    deadline = time.monotonic() + STOP_SECONDS
    for process in living:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)
    _, alive = psutil.wait_procs(children, 3)
    for each in alive:
        each.kill()


@dataclass
class StockAirflow:
    """One installed Airflow with its settings in environment variables, as in a container."""

    python: Path
    home: Path
    database: str
    environment: dict[str, str]
    port: int = field(default_factory=lambda: free_ports(0)[0])
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def dags(self) -> Path:
        return self.home / "dags"

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(f"http://127.0.0.1:{self.port}", "admin", PASSWORD)

    def prepare(self) -> None:
        self.dags.mkdir(parents=True)
        passwords = self.home / "passwords.json"
        passwords.write_text(json.dumps({"admin": PASSWORD}))
        self.airflow("db", "migrate")

    def environ(self) -> dict[str, str]:
        """Nothing of this test's own Python reaches it."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AIRFLOW", "FOREBAY", "PYTHON", "VIRTUAL_ENV"))
        }
        url = f"http://127.0.0.1:{self.port}"
        return {
            **kept,
            "PATH": f"{self.python.parent}:/usr/bin:/bin",
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home / "passwords.json"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2{self.database}",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": f"postgresql+asyncpg{self.database}",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": url,
            "AIRFLOW__API__SECRET_KEY": "k" * 64,
            "AIRFLOW__API_AUTH__JWT_SECRET": "j" * 64,
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "NO_PROXY": "127.0.0.1",
            **self.environment,
        }

    def command(self, name: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.python.parent / name), *arguments],
            cwd=self.home,
            env=self.environ(),
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        assert done.returncode == 0, f"{name} {arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def airflow(self, *arguments: str) -> str:
        return self.command("airflow", *arguments)

    def start(self) -> None:
        """All four parts, the API server first and warm, as docs/airflow.md says."""
        self._start("api-server")
        for path in ("/api/v2/version", "/execution/health"):
            wait_until(lambda path=path: self._answers(path), f"no answer at {path}")
        for part in ("dag-processor", "scheduler", "triggerer"):
            self._start(part)

    def stop(self) -> None:
        """End all parts, the API server last: the others talk to it."""
        end(self._running[1:], signal.SIGTERM)
        end(self._running[:1], signal.SIGTERM)
        self._running.clear()

    def log(self, part: str) -> str:
        return (self.home / f"{part}.log").read_text(errors="replace")

    def _start(self, part: str) -> None:
        with (self.home / f"{part}.log").open("wb") as log:
            self._running.append(
                subprocess.Popen(
                    [str(self.python.parent / "airflow"), part],
                    cwd=self.home,
                    env=self.environ(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def _answers(self, path: str) -> bool:
        try:
            with urlopen(f"{self.endpoint.url}{path}", timeout=60) as answer:
                return bool(answer.status == 200)
        except (URLError, ConnectionError, TimeoutError):
            return False
