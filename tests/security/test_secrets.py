"""Secrets of the environment are nowhere but there: not on disk, not in the database, not shown.

Sources on Kafka and Iceberg, facts in PostgreSQL and a store in S3, each with a secret of its own;
runs that succeed and fail; then everything that was written or said is searched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.planted_secrets import SecretSearch, files_below, forms, in_address, nobody, rows_of
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    Topic,
    ads_pipeline,
    history_source,
    publish_day,
    rows_of_day,
    topic_source,
)
from support.s3_server import S3Server, s3_url

from forebay.datatasks.sources.kafka.producer import publish

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]
WINDOW = f"{FIRST_DAY:%Y-%m-%d}"
RANGE = ("--from", WINDOW, "--to", WINDOW)
ROWS = 300
POISON = b"no Arrow stream"
SECRETS = {
    "KAFKA_USER": "planted-kafka-user",
    "KAFKA_SASL": "planted/Kafka+pass=w0rd",
    "LAKE_KEY": "AKIAPLANTEDLAKEKEY07",
    "LAKE_SECRET": "planted/lake+secret/4f5e6d",
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDSTOREKEY8",
    "AWS_SECRET_ACCESS_KEY": "planted/store+secret/1a2b3c",
    "PGPASSWORD": "planted-pg-password",
    "CATALOG_PASSWORD": "planted:catalog@pass/word",
    "DATABASE_PASSWORD": "planted&database?pass#word",
}
SEARCH = SecretSearch(SECRETS.values())
# What of the environment holds a password inside an address.
CATALOG, DATABASE = "CATALOG_URI", "FOREBAY_DATABASE"


FAILING, NAMES = "FOREBAY_PLANTED_ROLE", "FOREBAY_PLANTED_NAMES"
# Process -> where its work begins.
BODIES = {
    "supervisor": ("forebay.executors.supervisor.supervisor", "Supervisor", "_gathered"),
    "driver": ("forebay.executors.driver.driver", "Driver", "start"),
    "data_executor": ("forebay.executors.data_executor.executor", "DataExecutor", "run"),
    "trainer": ("forebay.executors.trainer.loop", "WindowTrainer", "train"),
}
# A `sitecustomize`, which Python runs at every start: the one process that is named fails with
# secrets of its environment in the message of the error.
FAILS = f"""
import importlib, os, sys

BODIES = {BODIES!r}

def fail(*_, **__):
    values = [os.environ.get(name, "") for name in os.environ["{NAMES}"].split(",")]
    raise RuntimeError("planted: " + " and ".join(values))

role = os.environ.get("{FAILING}", "")
if role and f"forebay.executors.{{role}}" in sys.orig_argv:
    module, kind, name = BODIES[role]
    setattr(getattr(importlib.import_module(module), kind), name, fail)
"""


@dataclass
class Planted:
    """A project whose environment is full of secrets, and everything that it has said."""

    project: Project
    folder: Path
    said: list[str] = field(default_factory=list)

    def forebay(self, *arguments: str, code: int | None = 0, **more: str) -> str:
        """Standard output of a command; all that it says is remembered.

        Those that start others, or fail in a way of their own, are processes.
        """
        is_own = arguments[0] in {"run", "--debug"}
        project = replace(self.project, environment=self.project.environment | more)
        done = project.forebay(*arguments, check=False, timeout_seconds=300, process=is_own)
        self.said.append(done.stdout + done.stderr)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def fail(self, role: str) -> str:
        """A run in which a process of the job fails; what was said about it."""
        folder, names = self.folder / "planted", ",".join([*SECRETS, CATALOG, DATABASE])
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(FAILS)
        failing = {"PYTHONPATH": str(folder), FAILING: role, NAMES: names}
        self.forebay("run", "ads", *RANGE, "--reprocess", code=None, **failing)
        return self.said[-1]


@pytest.fixture
def planted(
    kafka_bootstrap: str,
    new_topic: Callable[..., str],
    new_database: Callable[[], str],
    s3_server: S3Server,
    s3_access: None,
    tmp_path: Path,
) -> Planted:
    lake = in_address(SECRETS["CATALOG_PASSWORD"], new_database(), "+psycopg2")
    topic = Topic(kafka_bootstrap, new_topic(2))
    publish_day(topic, FIRST_DAY, ROWS, seed=100)
    publish(kafka_bootstrap, topic.name, [(POISON, FIRST_DAY + timedelta(hours=23), 1)])
    fill_table(lake, tmp_path)
    # As the broker asks for no password, these have to do: others are refused without SASL.
    client = {"client_id": "${KAFKA_USER}", "client_rack": "${KAFKA_SASL}"}
    project = Project(tmp_path / "project", ads_pipeline(), home_folder=tmp_path / "home")
    project.write_source(
        "clicks", topic_source(topic, options={"client": client}, bad_rows="dead_letter")
    )
    project.write_source("history", table_source(tmp_path))
    project.write_pipeline()
    project.environment = SECRETS | {
        CATALOG: lake,
        DATABASE: in_address(SECRETS["DATABASE_PASSWORD"], new_database()),
        "FOREBAY_STORE": s3_url(s3_server.endpoint, s3_server.new_bucket()),
    }
    return Planted(project, tmp_path)


def table_source(folder: Path) -> dict[str, Any]:
    """An Iceberg table in a catalog on PostgreSQL, with keys for a bucket that it does not use."""
    catalog = {
        "type": "sql",
        "uri": "${CATALOG_URI}",
        "warehouse": f"file://{folder}/warehouse",
        "s3.access-key-id": "${LAKE_KEY}",
        "s3.secret-access-key": "${LAKE_SECRET}",
    }
    options = {"catalog": catalog, "table": "shop.history"}
    return history_source(kind="iceberg", options=options)


def fill_table(address: str, folder: Path) -> None:
    """A day of rows in the table, written by another program."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("default", uri=address, warehouse=f"file://{folder}/warehouse")
    try:
        catalog.create_namespace("shop")
        rows = rows_of_day(FIRST_DAY - DAY, ROWS, 99)
        catalog.create_table("shop.history", rows.schema).append(rows)
    finally:
        catalog.close()


def objects_of(server: S3Server, address: str) -> Iterator[tuple[str, bytes]]:
    bucket = urlsplit(address).netloc
    pages = server.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    for key in [each["Key"] for page in pages for each in page.get("Contents", [])]:
        yield f"object {key}", server.client.get_object(Bucket=bucket, Key=key)["Body"].read()


def test_the_search_finds_what_is_planted() -> None:
    for name, secret in SECRETS.items():
        for form in forms(secret):
            assert SEARCH.found_in(name, b"before " + form + b" after"), form


@pytest.mark.guarantee(
    "a secret of the environment that sources, the database or the store need",
    "it is in no file, row, object, log, report or output, whatever fails",
)
def test_no_secret_is_written_or_shown(planted: Planted, s3_server: S3Server) -> None:
    home, environment = planted.project.home, planted.project.environment
    for words in (
        ("check", "--connect"),
        ("explain", "ads", "--output", "json"),
        ("preview", "clicks"),
        ("preview", "history"),
        ("plan", "ads", *RANGE),
    ):
        planted.forebay(*words)
    planted.forebay("run", "ads", *RANGE, "--summary", str(home / "summary.json"))

    for role in BODIES:
        said = planted.fail(role)
        assert "planted: " in said or role == "supervisor", said
        assert ("${KAFKA_SASL}" in said) == (role in {"driver", "data_executor"}), said
    crashed = (home / "jobs").glob("*/logs/supervisor.log")
    logs = "".join(path.read_text() for path in crashed)
    assert "Traceback" in logs
    assert "planted: ${KAFKA_USER} and ${KAFKA_SASL}" in logs
    assert list((home / "jobs").glob("*/failures/*.json"))

    away = {CATALOG: nobody(environment[CATALOG])}
    planted.forebay("--debug", "plan", "ads", *RANGE, code=4, **away)
    assert "nobody-answers-here" in planted.said[-1]
    bad = {DATABASE: f"{environment[DATABASE]}&bogus=1"}
    planted.forebay("--debug", "models", "ls", "ads", code=4, **bad)
    for words in (
        ("report", str(home / "summary.json")),
        ("why", "ads", WINDOW),
        ("models", "ls", "ads"),
        ("dead", "show", "ads", "--output", "json"),
        ("home", "check"),
        ("doctor",),
        ("gc", "--dry-run"),
    ):
        planted.forebay(*words, code=None)
    assert "no Arrow stream" in "".join(planted.said), "a message was poison, and is a dead letter"

    request = json.loads(next((home / "jobs").glob("*/job.json")).read_text())
    options = request["sources"]["clicks"]["options"]
    assert options["client"]["client_rack"] == "${KAFKA_SASL}"
    written = [
        *files_below(home),
        *files_below(planted.project.root),
        *rows_of(environment[DATABASE]),
        *objects_of(s3_server, environment["FOREBAY_STORE"]),
        *((f"said {number}", text.encode()) for number, text in enumerate(planted.said)),
    ]
    assert len(written) > 60
    assert SEARCH.found(written) == []
