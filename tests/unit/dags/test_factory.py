"""Generated DAGs as Airflow parses them, each in a process of its own."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cpu_limits import slowness
from support.projects import Project, clicks_source, declared_project, history_source
from support.python_code import printed_json

from forebay.dags.sync import sync

PARSE = """
import json, sys, time
from pathlib import Path
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.serialization.serialized_objects import DagSerialization

folder = Path(sys.argv[1])
before, began = set(sys.modules), time.process_time()
bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="parsed")
first = time.process_time() - began
began = time.process_time()
BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="parsed")
stored = {name: DagSerialization.to_dict(dag) for name, dag in bag.dags.items()}
read = {name: DagSerialization.from_dict(text) for name, text in stored.items()}
print(json.dumps({
    "errors": {Path(name).name: text for name, text in bag.import_errors.items()},
    "stored": stored,
    "listed": {
        name: {task.task_id: task.source for task in dag.tasks if hasattr(task, "source")}
        for name, dag in bag.dags.items()
    },
    "no_process": {
        name: [task.task_id for task in dag.tasks if task.inherits_from_empty_operator]
        for name, dag in bag.dags.items()
    },
    "read": {
        name: {"tasks": sorted(dag.task_ids), "windows": dag.timetable.summary}
        for name, dag in read.items()
    },
    "modules": sorted(sys.modules),
    "added": sorted(set(sys.modules) - before),
    "first_seconds": first,
    "next_seconds": (time.process_time() - began) / max(1, len(bag.dags) + len(bag.import_errors)),
}, default=str))
"""
HEAVY = ("tensorflow", "keras", "pyarrow", "pyiceberg", "pandas", "scipy", "kafka", "grpc")
# Measured alone: 0.25 s the first time in a process that has Airflow, 0.04 s each time after.
FIRST_CPU_SECONDS_MAX = 1.5
NEXT_CPU_SECONDS_MAX = 0.5


RUNTIME = {"python": "/srv/python", "environment": ["ACME_*"]}
Json = dict[str, Any]


def parse(dags: Path, home: Path, seed: int = 0) -> Json:
    others = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")}
    asked = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONHASHSEED": str(seed),
        "FOREBAY_HOME": str(home.with_name("forebay")),
        "FOREBAY_DATABASE": "an address that whoever opens the database is refused for",
    }
    return printed_json(PARSE, others | asked, str(dags))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("factory")
    schedule = {"catchup": True, "active_runs_max": 4, "retries": 2, "retry_delay": "30s"}
    schedule |= {"pool": "training", "owner": "ada", "tags": ["ads", "daily"]}
    schedule |= {"plan_timeout": "10m", "train_timeout": "2h"}
    project = declared_project(root / "project")
    project.pipeline |= {"description": "Who clicks", "schedule": schedule}
    project.pipeline["dataset"] |= {"timezone": "America/New_York", "end": "2026-04-01"}
    project.pipeline["job"]["roles"] = {"data": {"count": 3, "runtime": RUNTIME}}
    project.write_source("history", history_source(description="Rows of ${YESTERDAY:-yesterday}"))
    project.write_pipeline()
    pipelines = project.root / "config" / "pipelines"
    text = (pipelines / "ads.yaml").read_text()
    (pipelines / "slip.yaml").write_text(text.replace("- clicks", "- clics").replace("1024", "-1"))
    (pipelines / "names.yaml").write_text(text.replace("- clicks", "- clics"))
    twice = yaml.safe_load(text)
    week = {"sources": ["clicks"], "offset": "7d", "feed": "batch"}
    twice["dataset"]["streams"]["week"] = week
    (pipelines / "twice.yaml").write_text(yaml.safe_dump(twice))
    (pipelines / "uses_bad.yaml").write_text(text.replace("- clicks", "- bad"))
    project.write_source("bad", clicks_source(event_tme="at", password="planted-by-mistake"))
    sync(project.root / "config", root / "dags")
    return root


@pytest.fixture(scope="module")
def parsed(place: Path) -> Json:
    return parse(place / "dags", place / "airflow")


def tasks(parsed: Json) -> dict[str, dict[str, Any]]:
    stored = parsed["stored"]["ads"]["dag"]["tasks"]
    return {task["__var"]["task_id"]: task["__var"] for task in stored}


def test_tasks_and_their_order(parsed: Json) -> None:
    order = {
        name: sorted(task.get("downstream_task_ids", [])) for name, task in tasks(parsed).items()
    }
    chain = ("joiner", "sink", "data_executors", "training_executors", "evaluate", "publish")
    assert order == {
        "timer": ["sources.clicks", "sources.history"],
        "sources.history": ["joiner"],
        "sources.clicks": ["joiner"],
        **{name: [after] for name, after in pairwise(chain)},
        "publish": [],
    }


def test_the_dag_is_as_declared(parsed: Json) -> None:
    dag = parsed["stored"]["ads"]["dag"]
    assert dag["timetable"] == {
        "__type": "forebay.operators.timetable.WindowTimetable",
        # 28 February begins at 05:00 UTC in New York; the end itself is not inside.
        "__var": {
            "size": "1d",
            "timezone": "America/New_York",
            "bounds": ["2026-02-28T05:00:00+00:00", "2026-03-31T23:59:59.999999+00:00"],
        },
    }
    assert (dag["catchup"], dag["max_active_runs"], dag["description"]) == (True, 4, "Who clicks")
    # Airflow runs no task of a manual run outside a DAG's dates, and shows it as a success.
    dated = [
        part for part in (dag, *tasks(parsed).values()) if part.keys() & {"start_date", "end_date"}
    ]
    assert (dated, sorted(dag["tags"])) == ([], ["ads", "daily", "forebay"])
    assert "| history | parquet | history | 1d |" in dag["doc_md"]
    assert dag["doc_md"].startswith(
        "Who clicks\n\nEach run processes one window (1d of America/New_York)"
    )


def test_tasks_are_as_declared(parsed: Json) -> None:
    found = tasks(parsed)
    defaults = parsed["stored"]["ads"]["dag"]["default_args"]["__var"]
    for task in found.values():
        told = defaults | task
        assert (told["owner"], told["pool"], told["retries"]) == ("ada", "training", 2)
        assert not told.get("depends_on_past")
    assert len({task["ui_color"] for task in found.values()}) > 4
    del found["joiner"]  # has no process, and nothing to declare
    for task in found.values():
        assert (task["python"], task["variables"]) == ("/srv/python", ["ACME_*", "YESTERDAY"])
    limits = {name: task["execution_timeout"] for name, task in found.items()}
    assert limits.pop("training_executors") == 2 * 3600 + 300
    assert set(limits.values()) == {600 + 300}
    turns = {name: task.get("max_active_tis_per_dag") for name, task in found.items()}
    assert turns == dict.fromkeys(found, None) | {"data_executors": 1}
    links = {name: task.get("_operator_extra_links", {}) for name, task in found.items()}
    assert set(links["data_executors"]) == {"Training log", "Window before"}
    assert set(links["training_executors"]) == {"Metrics", "Window before"}


def test_what_is_stored_is_read_back_and_the_same_again(parsed: Json, place: Path) -> None:
    read = {"tasks": sorted(tasks(parsed)), "windows": "1d America/New_York"}
    assert parsed["read"]["ads"] == read
    assert parse(place / "dags", place / "airflow", seed=4711)["stored"] == parsed["stored"]


def test_parsing_is_light(parsed: Json) -> None:
    """Every task of every run parses its DAG: seconds here are seconds of each task."""
    assert {name.partition(".")[0] for name in parsed["modules"]} & set(HEAVY) == set()
    # Airflow may have numpy for itself; we must not be who brings it.
    assert not [name for name in parsed["added"] if name.partition(".")[0] == "numpy"]
    print(f"parse: {parsed['first_seconds']:.3f} CPU s, then {parsed['next_seconds']:.3f} each")
    assert parsed["first_seconds"] < FIRST_CPU_SECONDS_MAX * slowness()
    assert parsed["next_seconds"] < NEXT_CPU_SECONDS_MAX * slowness()


def test_an_error_is_what_check_says_and_breaks_its_own_dag_only(parsed: Json, place: Path) -> None:
    # No database is opened: its address is wrong, which would be an error of the file.
    assert not (place / "forebay").exists()
    assert set(parsed["stored"]) == {"ads", "twice"}
    assert set(parsed["errors"]) == {"slip.py", "names.py", "uses_bad.py"}
    assert "password: ***" in parsed["errors"]["uses_bad.py"]
    assert "planted-by-mistake" not in str(parsed["errors"])
    project, config = Project(place / "project"), str(place / "project" / "config")
    printed = project.forebay("check", "--config", config, check=False).stdout
    problems = [line for line in printed.splitlines() if line.startswith(config)]
    for name in ("slip", "names", "uses_bad"):
        concerned = [f"pipelines/{name}.yaml", *(["sources/bad.yaml"] * (name == "uses_bad"))]
        expected = [line for line in problems if any(file in line for file in concerned)]
        assert expected
        message = parsed["errors"][f"{name}.py"].partition("ConfigError: ")[2]
        assert [line for line in message.splitlines() if not line.startswith("    ")] == expected
        # Below each problem stand its line of YAML and a mark.
        assert message.count("^") == len(expected)
    assert "did you mean clicks?" in parsed["errors"]["names.py"]
    assert "event_tme" in parsed["errors"]["uses_bad.py"]
    # It is read in Airflow's banner: its trace is short.
    assert parsed["errors"]["names.py"].count('File "') <= 2
    assert "During handling" not in parsed["errors"]["names.py"]


def test_each_stream_that_reads_a_source_has_a_task_of_its_own(parsed: Json) -> None:
    listed = parsed["listed"]["twice"]
    assert listed == {
        "sources.history": "history",
        "sources.clicks.clicks": "clicks@clicks",
        "sources.clicks.week": "clicks@week",
    }
    assert parsed["no_process"]["twice"] == ["joiner"]
