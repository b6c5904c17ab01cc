"""Each extra alone in a fresh environment: what it is for works, and what is missing is named."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import iceberg_tables
from support.dag_parse import PARSE_DAGS, own_airflow
from support.projects import (
    FIRST_DAY,
    Project,
    Topic,
    ads_pipeline,
    ads_project,
    history_source,
    rows_of_day,
    topic_source,
)
from support.record_files import tf_rows
from support.summaries import summary
from support.wheels import built_wheel, installed

from forebay.system.extras import EXTRAS

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

CORE = ""
USERS_EXTRAS = (
    *("airflow", "avro", "demo", "embedded", "iceberg", "kafka", "postgres"),
    *("protobuf", "report", "s3", "tfrecord", "train"),
)
WINDOW = "2026-03-01"
ROWS = 2_000
NO_BROKER = Topic("127.0.0.1:9", "clicks")
DEMO_SECONDS = 900.0
ROW = {"user": "u1", "price": 9.5, "mobile": True, "tags": ["t1"]}


@dataclass
class Alone(Project):
    """A project whose commands run in an environment of its own."""

    python: Path = Path()

    def command(self, *arguments: str) -> list[str]:
        return [str(self.python), "-P", "-m", "forebay", *arguments]


@pytest.fixture(scope="module")
def python_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The Python of an environment with one extra; each is installed once."""
    root = tmp_path_factory.mktemp("extras")
    (root / "tree").mkdir()
    wheel = built_wheel(root / "tree")
    return cache(lambda extra: installed(root / (extra or "core"), wheel, extra))


def small_project(root: Path, python: Path, model: str = "count") -> Alone:
    """One window of stored rows and a log."""
    pipeline = ads_pipeline(model)
    if model == "towers":
        pipeline["model"]["tower"] = {"hidden": [8]}
    made = ads_project(root / "project", rows=ROWS, pipeline=pipeline)
    return Alone(made.root, made.pipeline, python=python)


def with_kafka(project: Alone) -> Alone:
    """The log becomes a topic of a broker that is not there."""
    project.write_source("clicks", topic_source(NO_BROKER))
    return project


def with_iceberg(project: Alone) -> Alone:
    """The stored rows become a table."""
    iceberg_tables.append(project.root, rows_of_day(FIRST_DAY, ROWS, seed=1))
    options = {"catalog": iceberg_tables.CATALOG, "table": iceberg_tables.TABLE}
    project.write_source("history", history_source(kind="iceberg", options=options))
    return project


def with_tfrecord(project: Alone) -> Alone:
    """The stored rows become a TFRecord file."""
    (project.root / "rows.tfrecord").write_bytes(tf_rows(rows_of_day(FIRST_DAY, ROWS, seed=1)))
    project.write_source("history", history_source(kind="tfrecord", options={"path": "."}))
    return project


def with_summary(project: Alone) -> Alone:
    """A finished run's summary is there."""
    (project.root / "run.json").write_text(json.dumps(summary()))
    return project


def as_json(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def play_demo(python: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """The demo and its YAML are in the repository, Forebay is what is installed."""
    kept = {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP"}
    places = home.with_name("places")
    places.mkdir(exist_ok=True)
    (places / "examples").symlink_to(Path("examples").resolve())
    added = {"FOREBAY_HOME": str(home), "AIRFLOW": "0", "PYTHONPATH": str(places)}
    return subprocess.run(
        [str(python), "-P", "-m", "examples.demo"],
        env=kept | added,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEMO_SECONDS,
    )


def test_no_extra_is_left_out() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert {*USERS_EXTRAS, "dev", "docs"} == set(project["optional-dependencies"])


@pytest.mark.parametrize("extra", [CORE, *USERS_EXTRAS])
def test_help_and_check(python_with: Callable[[str], Path], extra: str, tmp_path: Path) -> None:
    project = small_project(tmp_path, python_with(extra))
    assert "check" in project.forebay("--help").stdout
    assert project.forebay("check").stdout == "2 sources, 1 pipeline: no problems\n"


def test_core_plans_and_counts(python_with: Callable[[str], Path], tmp_path: Path) -> None:
    project = small_project(tmp_path, python_with(CORE))
    planned = as_json(
        project.forebay("plan", "ads", "--from", WINDOW, "--to", WINDOW, "--output", "json")
    )
    assert planned
    assert project.forebay("preview", "clicks").stdout.startswith("source      clicks (kind log)")
    found = project.run(WINDOW, WINDOW)
    (window,) = found["windows"]
    assert found["rows_agree"] is True
    assert {name: each["trained_rows"] for name, each in window["sources"].items()} == {
        "history": ROWS,
        "clicks": ROWS,
    }


@pytest.mark.parametrize(
    ("extra", "change", "arguments"),
    [
        ("iceberg", with_iceberg, ["preview", "history"]),
        ("kafka", with_kafka, ["preview", "clicks"]),
        ("tfrecord", with_tfrecord, ["preview", "history"]),
        ("report", with_summary, ["report", "run.json"]),
        ("embedded", with_summary, ["airflow", "dags", "list"]),
    ],
)
def test_core_names_the_extra_that_a_command_needs(
    python_with: Callable[[str], Path],
    tmp_path: Path,
    extra: str,
    change: Callable[[Alone], Alone],
    arguments: list[str],
) -> None:
    project = change(small_project(tmp_path, python_with(CORE)))
    refused(project.forebay(*arguments, check=False), extra, project.python)


def test_core_names_the_extra_that_training_needs(
    python_with: Callable[[str], Path], tmp_path: Path
) -> None:
    project = small_project(tmp_path, python_with(CORE), "towers")
    done = project.forebay("run", "ads", "--from", WINDOW, "--to", WINDOW, check=False)
    refused(done, "train", project.python)


def test_core_names_the_extra_that_the_demo_needs(
    python_with: Callable[[str], Path], tmp_path: Path
) -> None:
    python = python_with(CORE)
    refused(play_demo(python, tmp_path / "home"), "demo", python)


def refused(done: subprocess.CompletedProcess[str], extra: str, python: Path) -> None:
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{EXTRAS[extra].purpose} needs the extra {extra!r}" in done.stderr
    assert f"pip install 'forebay[{extra}]' ({python} has no " in done.stderr
    assert "Traceback" not in done.stderr


def test_train_trains_a_window_and_scores_a_row(
    python_with: Callable[[str], Path], tmp_path: Path
) -> None:
    project = small_project(tmp_path, python_with("train"), "towers")
    found = project.run(WINDOW, WINDOW, timeout_seconds=300)
    assert found["rows_agree"] is True
    scored = as_json(
        project.forebay("score", found["model"], "--row", json.dumps(ROW), "--output", "json")
    )
    assert 0 < scored[0]["score"] < 1


def test_kafka_checks_and_says_that_no_broker_answers(
    python_with: Callable[[str], Path], tmp_path: Path
) -> None:
    project = with_kafka(small_project(tmp_path, python_with("kafka")))
    assert project.forebay("check").stdout == "2 sources, 1 pipeline: no problems\n"
    done = project.forebay("preview", "clicks", check=False)
    assert done.returncode == 4
    assert NO_BROKER.bootstrap in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("extra", "change"), [("iceberg", with_iceberg), ("tfrecord", with_tfrecord)]
)
def test_a_source_plans_and_previews(
    python_with: Callable[[str], Path], tmp_path: Path, extra: str, change: Callable[[Alone], Alone]
) -> None:
    project = change(small_project(tmp_path, python_with(extra)))
    shown = as_json(project.forebay("preview", "history", "--output", "json"))
    assert (shown["kind"], len(shown["rows"]), shown["problems"]) == (extra, 5, [])
    assert project.forebay("plan", "ads", "--from", WINDOW, "--to", WINDOW).stdout


def test_report_writes_a_page(python_with: Callable[[str], Path], tmp_path: Path) -> None:
    project = with_summary(small_project(tmp_path, python_with("report")))
    project.forebay("report", "run.json", "--html", "page.html")
    page = (project.root / "page.html").read_text()
    assert page.count("<svg") == page.count("<figcaption>") >= 5


def test_airflow_parses_a_pipeline(python_with: Callable[[str], Path], tmp_path: Path) -> None:
    project = small_project(tmp_path, python_with("airflow"))
    project = replace(project, environment=own_airflow(tmp_path / "airflow"))
    dags = tmp_path / "dags"
    project.forebay("dags", "sync", "--dags", str(dags))
    parsed = subprocess.run(
        [str(project.python), "-P", "-c", PARSE_DAGS, str(dags)],
        env=project.env(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert parsed.returncode == 0, parsed.stderr
    found = json.loads(parsed.stdout.splitlines()[-1])
    assert found["errors"] == {}
    assert set(found["tasks"]) == {"ads"}


def test_embedded_is_complete_for_doctor(
    python_with: Callable[[str], Path], tmp_path: Path
) -> None:
    """What else doctor finds is this machine's."""
    project = small_project(tmp_path, python_with("embedded"))
    done = project.forebay("doctor", "--output", "json", check=False)
    found = {each["check"]: each for each in as_json(done)}
    assert found["extra embedded"]["state"] == "ok"
    assert found["extra train"]["state"] == "warning"


def test_the_demo_plays(python_with: Callable[[str], Path], tmp_path: Path) -> None:
    done = play_demo(python_with("demo"), tmp_path / "home")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 rows lost, 0 repeated (checked in the model)"
