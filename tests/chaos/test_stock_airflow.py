"""Forebay in an Airflow that was there before: the wheel, two environments, a user's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from support import independent
from support.projects import ads_pipeline, ads_project
from support.stock_airflow import StockAirflow, database, wait_until
from support.truth_rows import links_of, stored_of
from support.wheels import built_wheel, installed, run

from forebay.embedded.airflow.rest import AirflowApi

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

ROWS = 2_000
WINDOW = "2026-03-01"
TRAINED_SECONDS = 240
DRIVERS = ("psycopg2-binary", "asyncpg")  # of the user's own database


def has(python: Path, module: str) -> bool:
    code = f"from importlib.util import find_spec; print(find_spec({module!r}) is not None)"
    return run([str(python), "-P", "-c", code], python.parent).strip() == "True"


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockAirflow]:
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
    with database(root / "database") as address:
        settings = {"AIRFLOW__FOREBAY__HOME": str(root / "state")}
        found = StockAirflow(airflow, root / "airflow", address, settings)
        found.prepare()
        found.command(
            "forebay", "dags", "sync", "--config", f"{root}/user/config", "--dags", str(found.dags)
        )
        try:
            found.start()
            yield found
        finally:
            found.stop()
    assert processes_below(root) == []


def processes_below(root: Path) -> list[str]:
    """Command lines of all processes whose environment names this folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            environment = process.environ()
            names = ("AIRFLOW_HOME", "FOREBAY_HOME")
            if any(str(root) in environment.get(name, "") for name in names):
                found.append(" ".join(process.cmdline()))
    return found


def ended_run(api: AirflowApi) -> dict[str, Any]:
    """The pipeline's one run once it is over; nothing before."""
    return next((run for run in api.dag_runs("ads") if run["state"] in {"success", "failed"}), {})


def test_the_provider_is_listed(stock: StockAirflow) -> None:
    listed = stock.airflow("providers", "list", "--output", "json")
    providers = json.loads(listed.splitlines()[-1])  # lines of its log stand before it
    assert "forebay" in [each["package_name"] for each in providers]


def test_a_window_trains(stock: StockAirflow) -> None:
    api = AirflowApi(stock.endpoint)
    root = stock.home.parent
    wait_until(lambda: api.dags() or api.import_errors(), "no DAG appeared")
    assert api.import_errors() == []
    (dag,) = api.dags()
    assert (dag["dag_id"], dag["is_paused"]) == ("ads", True), "a stock Airflow begins with a pause"
    api.pause("ads", paused=False)
    window = datetime.fromisoformat(WINDOW).replace(tzinfo=UTC)
    api.create_backfill("ads", window, window)
    wait_until(lambda: ended_run(api), "the run did not end", TRAINED_SECONDS)
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
