"""Forebay in an Airflow that was there before: the wheel, two environments, a user's folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pytest
from support import independent
from support.kills import is_alive
from support.postgres_server import PostgresServer
from support.projects import ads_pipeline, ads_project
from support.there import until
from support.truth_rows import links_of, stored_of
from support.wheels import built_wheel, installed, run

from forebay.embedded.airflow.http import Endpoint
from forebay.embedded.airflow.rest import AirflowApi
from forebay.embedded.ports import free_ports

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

ROWS = 2_000
WINDOW = "2026-03-01"
TRAINED_SECONDS = 240
DRIVERS = ("psycopg2-binary", "asyncpg")  # of the user's own database
COMMAND_SECONDS = 240
START_SECONDS = 120
STOP_SECONDS = 20
PASSWORD = "a password of the user's"


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask processes to end, and their children with them; make those that do not."""
    living = [each for each in processes if is_alive(each.pid)]
    children = [c for each in living for c in psutil.Process(each.pid).children(recursive=True)]
    for process in living:
        process.terminate()
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
    """As somebody else runs it: own environment, settings as in a container.

    database: its address for SQLAlchemy without a driver.
    """

    python: Path
    home: Path
    database: str
    state: Path
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
            "AIRFLOW__FOREBAY__HOME": str(self.state),
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
            assert until(partial(self._answers, path), START_SECONDS), f"no answer at {path}"
        for part in ("dag-processor", "scheduler", "triggerer"):
            self._start(part)

    def stop(self) -> None:
        """End all parts, the API server last: the others talk to it."""
        end(self._running[1:])
        end(self._running[:1])
        self._running.clear()

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


def has(python: Path, module: str) -> bool:
    code = f"from importlib.util import find_spec; print(find_spec({module!r}) is not None)"
    return run([str(python), "-P", "-c", code], python.parent).strip() == "True"


@pytest.fixture(scope="module")
def stock(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[StockAirflow]:
    """Airflow knows no TensorFlow, the executors no Airflow; both have the same wheel."""
    root = tmp_path_factory.mktemp("stock")
    (root / "tree").mkdir()
    wheel = built_wheel(root / "tree")
    airflow = installed(root / "airflow-environment", wheel, "airflow", *DRIVERS)
    train = installed(root / "train-environment", wheel, "train")
    assert (has(airflow, "airflow"), has(airflow, "tensorflow")) == (True, False)
    assert (has(train, "airflow"), has(train, "tensorflow")) == (False, True)
    pipeline = ads_pipeline("towers")
    pipeline["model"]["tower"] = {"hidden": [8]}
    pipeline["dataset"]["end"] = "2026-03-02"
    runtime = {"runtime": {"python": str(train)}}
    pipeline["job"]["roles"] = {"data": runtime, "trainer": runtime}
    ads_project(root / "user", rows=ROWS, pipeline=pipeline)
    address = postgres_server.new_database().removeprefix("postgresql")
    found = StockAirflow(airflow, root / "airflow", address, root / "state")
    found.prepare()
    found.command(
        "forebay", "dags", "sync", "--config", f"{root}/user/config", "--dags", str(found.dags)
    )
    try:
        found.start()
        yield found
    finally:
        found.stop()
    # What plans waits some minutes for the next window, as long as its folder is there.
    shutil.rmtree(found.state / "stages")
    assert until(lambda: not processes_below(root), 15), processes_below(root)


def processes_below(root: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            environment = process.environ()
            names = ("AIRFLOW_HOME", "FOREBAY_HOME")
            if any(str(root) in environment.get(name, "") for name in names):
                found.append(" ".join(process.cmdline()))
    return found


def ended_run(api: AirflowApi) -> dict[str, Any]:
    return next((run for run in api.dag_runs("ads") if run["state"] in {"success", "failed"}), {})


def test_the_provider_is_listed(stock: StockAirflow) -> None:
    listed = stock.airflow("providers", "list", "--output", "json")
    providers = json.loads(listed.splitlines()[-1])  # lines of its log stand before it
    assert "forebay" in [each["package_name"] for each in providers]


def test_a_window_trains(stock: StockAirflow) -> None:
    api = AirflowApi(stock.endpoint)
    root = stock.home.parent
    assert until(lambda: api.dags() or api.import_errors(), START_SECONDS), "no DAG appeared"
    assert api.import_errors() == []
    (dag,) = api.dags()
    assert (dag["dag_id"], dag["is_paused"]) == ("ads", True), "a stock Airflow begins with a pause"
    api.pause("ads", paused=False)
    window = datetime.fromisoformat(WINDOW).replace(tzinfo=UTC)
    api.create_backfill("ads", window, window)
    assert until(lambda: ended_run(api), TRAINED_SECONDS), "the run did not end"
    ended = ended_run(api)
    tasks = {
        each["task_id"]: each["state"] for each in api.task_instances("ads", ended["dag_run_id"])
    }
    assert ended["state"] == "success", tasks
    assert set(tasks.values()) == {"success"}
    (link,) = links_of(root / "state", "ads", WINDOW)
    assert link["seen"]["history"] == independent.parquet_sums(root / "user/data/history")
    assert {name: sums["rows"] for name, sums in link["seen"].items()} == {
        "history": ROWS,
        "clicks": ROWS,
    }
    model = stored_of(root / "state", "ads", WINDOW, "saved_model")
    assert model is not None
    assert (model / "saved_model.pb").is_file()
