"""Airflow's settings, and what its processes inherit."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from forebay.embedded.airflow.settings import (
    MARK_NAME,
    airflow_settings,
    component_environment,
    render,
)
from forebay.embedded.layout import Layout
from forebay.embedded.secret_files import load_secrets
from forebay.home.paths import Home


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(Home(tmp_path / "with 100% blanks"))
    layout.create()
    return layout


def test_what_airflow_reads(layout: Layout) -> None:
    database = "://forebay@/postgres?host=/tmp/a%20b"
    keys = load_secrets(layout)
    text = render(airflow_settings(layout, port=5001, database=database, keys=keys))
    found = configparser.ConfigParser()  # reads % as Airflow does
    found.read_string(text)
    api, core = found["api"], found["core"]
    assert (api["host"], api["base_url"]) == ("127.0.0.1", "http://127.0.0.1:5001")
    assert core["execution_api_server_url"] == "http://127.0.0.1:5001/execution/"
    assert found["database"]["sql_alchemy_conn"] == f"postgresql+psycopg2{database}"
    assert found["database"]["sql_alchemy_conn_async"].startswith("postgresql+asyncpg://")
    assert min(len(found["api_auth"]["jwt_secret"]), len(api["secret_key"])) >= 64
    assert (core["dags_folder"], core["load_examples"]) == (str(layout.dags), "False")
    assert "dags_are_paused_at_creation" not in core, "as Airflow has it"
    # A task asks again for longer than a restart of the API server may take, and counts as dead
    # only later.
    retries = found.getint("workers", "execution_api_retries")
    assert retries * found.getfloat("workers", "execution_api_retry_wait_max") > 60
    assert found.getint("scheduler", "task_instance_heartbeat_timeout") > 2 * 20


def test_what_components_inherit(layout: Layout) -> None:
    given = {
        "PATH": "/bin",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://production",
        "AIRFLOW_HOME": "/elsewhere",
        "AIRFLOW_CONN_STORE": "aws://",
        "AIRFLOW_VAR_X": "1",
        "FOREBAY_JOB_ID": "job-of-the-caller",
    }
    found = component_environment(layout, "scheduler", given)
    assert {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "FOREBAY_JOB_ID"}.isdisjoint(found)
    assert found["AIRFLOW_HOME"] == found[MARK_NAME] == str(layout.root)
    assert found["FOREBAY_HOME"] == str(layout.home.root)
    assert (found["AIRFLOW_CONN_STORE"], found["AIRFLOW_VAR_X"]) == ("aws://", "1")
    given = {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "example.org"}
    assert component_environment(layout, "scheduler", given)["NO_PROXY"] == "example.org,127.0.0.1"
    assert component_environment(layout, "scheduler", {})["no_proxy"] == "127.0.0.1"
