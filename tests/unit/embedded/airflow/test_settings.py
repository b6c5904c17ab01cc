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

SHORTEST_KEY = 64


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(Home(tmp_path / "with 100% blanks"))
    layout.create()
    return layout


def written(layout: Layout) -> configparser.ConfigParser:
    keys = load_secrets(layout)
    database = "://forebay@/postgres?host=/tmp/a%20b"
    text = render(airflow_settings(layout, port=5001, database=database, keys=keys))
    parser = configparser.ConfigParser()  # reads % as Airflow does
    parser.read_string(text)
    return parser


def test_only_this_machine_is_served(layout: Layout) -> None:
    found = written(layout)
    assert found["api"]["host"] == "127.0.0.1"
    assert found["api"]["base_url"] == "http://127.0.0.1:5001"
    assert found["core"]["execution_api_server_url"] == "http://127.0.0.1:5001/execution/"


def test_the_database_is_postgresql_on_a_socket(layout: Layout) -> None:
    found = written(layout)["database"]
    assert found["sql_alchemy_conn"] == "postgresql+psycopg2://forebay@/postgres?host=/tmp/a%20b"
    assert found["sql_alchemy_conn_async"].startswith("postgresql+asyncpg://")
    assert "sqlite" not in render({"database": dict(found)})


def test_keys_are_long_and_paths_are_read_back_as_they_are(layout: Layout) -> None:
    found = written(layout)
    assert len(found["api_auth"]["jwt_secret"]) >= SHORTEST_KEY
    assert len(found["api"]["secret_key"]) >= SHORTEST_KEY
    assert found["core"]["dags_folder"] == str(layout.dags)


def test_new_dags_are_paused_as_airflow_has_it_and_there_are_no_examples(layout: Layout) -> None:
    core = written(layout)["core"]
    assert core["load_examples"] == "False"
    assert "dags_are_paused_at_creation" not in core


def test_a_task_outlives_a_restart_of_the_api_server(layout: Layout) -> None:
    """It asks again for longer than a restart may take, and counts as dead only later."""
    found = written(layout)
    retries = found.getint("workers", "execution_api_retries")
    assert retries * found.getfloat("workers", "execution_api_retry_wait_max") > 60
    assert found.getint("scheduler", "task_instance_heartbeat_timeout") > 2 * 20


def test_another_airflows_settings_do_not_reach_ours_which_carry_their_mark(layout: Layout) -> None:
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


def test_this_machine_is_never_asked_through_a_proxy(layout: Layout) -> None:
    given = {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "example.org"}
    assert component_environment(layout, "scheduler", given)["NO_PROXY"] == "example.org,127.0.0.1"
    assert component_environment(layout, "scheduler", {})["no_proxy"] == "127.0.0.1"
