"""Secrets below a running `forebay up`: in no log, row, file or command line but where they belong.

They are planted in the environment, in connections of Airflow and in addresses. A run trains a
window, and another one fails with an address in its error; then everything is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from support.airflow_cluster import Airflow
from support.airflow_pipelines import Pipeline, write_yaml
from support.airflow_processes import processes_of
from support.planted_secrets import SecretSearch, files_below, in_address, nobody, rows_of
from support.projects import DAY, FIRST_DAY, ads_pipeline, ads_project, history_source

from forebay.embedded.layout import Layout
from forebay.embedded.postgres.place import database_place
from forebay.embedded.secret_files import load_secrets
from forebay.home.paths import Home

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
ADS, AWAY = Pipeline("ads", FIRST_DAY, {}), Pipeline("away", FIRST_DAY, {})
ENDS = f"{FIRST_DAY + DAY:%Y-%m-%dT%H:%M:%SZ}"
SECONDS = 240
SECRETS = {
    "LAKE_SECRET": "planted/lake+secret/4f5e6d",
    "AWS_SECRET_ACCESS_KEY": "planted/store+secret/1a2b3c",
    "PGPASSWORD": "planted-pg-password",
}
CATALOG_PASSWORD, DATABASE_PASSWORD = "planted:catalog@pass/word", "planted&database?pass#word"
CONNECTION_PASSWORD, KEPT_PASSWORD = "planted-connection-4711", "planted-kept-connection-0815"
SEARCH = SecretSearch(
    [*SECRETS.values(), CATALOG_PASSWORD, DATABASE_PASSWORD, CONNECTION_PASSWORD, KEPT_PASSWORD]
)
# What keeps Airflow's own: closed to others, and nothing else has them.
OWN_FILES = {"airflow.cfg", "secrets.json", "passwords.json"}


def pipeline(**streams: dict[str, Any]) -> dict[str, Any]:
    found = ads_pipeline()
    found["dataset"]["end"] = ENDS
    if streams:
        found["dataset"]["streams"] = streams
        found["train"]["paradigm"] = "batch"
    return found


@pytest.fixture
def airflow(tmp_path: Path, new_database: Callable[[], str]) -> Iterator[Airflow]:
    project = ads_project(tmp_path, rows=200, pipeline=pipeline())
    options = {"path": "data/history", "storage": {"secret": "${LAKE_SECRET}"}}
    project.write_source("history", history_source(options=options))
    catalog = {"type": "sql", "uri": "${CATALOG_URI}", "warehouse": "file:///tmp/nothing"}
    project.write_source(
        "lake", history_source(kind="iceberg", options={"catalog": catalog, "table": "shop.rows"})
    )
    away = pipeline(lake={"sources": ["lake"]})
    write_yaml(project, "away", yaml.safe_dump(away, sort_keys=False))
    database = new_database()
    project.environment = SECRETS | {
        "CATALOG_URI": nobody(in_address(CATALOG_PASSWORD, database, "+psycopg2")),
        "FOREBAY_DATABASE": in_address(DATABASE_PASSWORD, database),
        "AIRFLOW_CONN_PLANTED": f"postgres://someone:{CONNECTION_PASSWORD}@nowhere/nothing",
    }
    found = Airflow(project)
    try:
        found.up()
        found.unpause(ADS, AWAY)
        yield found
    finally:
        found.down("--remove-database")


def command_lines(airflow: Airflow) -> Iterator[tuple[str, bytes]]:
    for process in processes_of(airflow):
        with suppress(psutil.Error):
            yield f"process {process.name()}", " ".join(process.cmdline()).encode()


def environments_of_the_database(airflow: Airflow) -> Iterator[tuple[str, bytes]]:
    """Of all components the one that needs nothing that is planted."""
    server = psutil.Process(airflow.components()["postgres"]["pid"])
    for process in [server, *server.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            yield f"environment of {process.name()}", repr(process.environ()).encode()


@pytest.mark.guarantee(
    "the same under `forebay up`; secrets of Airflow's connections; the password and keys that "
    "Airflow is given",
    "they are in no log, row, file or command line, except for Airflow's own in the files that "
    "are made for them",
)
def test_no_secret_is_written_or_shown(airflow: Airflow) -> None:
    project, home = airflow.project, Home(airflow.project.home)
    kept = {"connection_id": "kept", "conn_type": "postgres", "password": KEPT_PASSWORD}
    airflow.http.post("/connections", kept)
    runs = {each.name: airflow.trigger(each, FIRST_DAY) for each in (ADS, AWAY)}
    seen: set[tuple[str, bytes]] = set()

    def over() -> bool:
        seen.update(command_lines(airflow))
        failed = airflow.run(AWAY, runs["away"])
        source = airflow.tasks(failed)["sources.lake"]["state"] in {"up_for_retry", "failed"}
        return source and airflow.run(ADS, runs["ads"]).ended_since(FIRST_DAY)

    airflow.until("one run is over, and the other one has failed", over, SECONDS, ADS, AWAY)
    assert airflow.run(ADS, runs["ads"]).state == "success"
    told = airflow.log(airflow.run(AWAY, runs["away"]), "sources.lake", 1)
    assert "nobody-answers-here" in told, "the address is in the error"

    said = [project.forebay(*words).stdout for words in (("status",), ("why", "ads", ADS.key(0)))]
    layout = Layout(home)
    written = [
        *seen,
        *environments_of_the_database(airflow),
        *files_below(project.root),
        *files_below(database_place(layout).folder),
        *rows_of(project.environment["FOREBAY_DATABASE"]),
        *(("said", text.encode()) for text in [told, *said]),
    ]
    names = {where.rpartition("/")[2] for where, _ in written}
    assert {"scheduler.log", "airflow.cfg", "ads.yaml", "PG_VERSION", "said"} <= names
    assert any(b"forebay.stages" in line for _, line in seen)
    assert SEARCH.found(written) == []

    assert airflow.endpoint is not None
    own = load_secrets(layout)
    search = SecretSearch([airflow.endpoint.password, own.jwt, own.session, own.fernet])
    others = [each for each in written if each[0].rpartition("/")[2] not in OWN_FILES]
    assert search.found(others) == []
    assert len(others) < len(written)
