"""Runs of a DAG without a scheduler (`dag.test`), in a separate process: see `run_inline`.

Airflow reads its settings when it is imported, warns a lot, and takes over logging, so that the
process of the tests never imports more of it than a test needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay.home.database.format import record_format
from forebay.home.paths import Home
from support.dag_parse import own_airflow
from support.python_code import TESTS


@dataclass(frozen=True)
class Scenario:
    """One run. answers: of the stand-in for stages in `toy`."""

    name: str
    logical_date: str | None
    answers: dict[str, list[dict[str, Any]]]
    conf: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class InlineRun:
    state: str
    tasks: dict[str, str | None]
    returned: dict[str, Any]
    links: dict[str, dict[str, str]]
    calls: dict[str, list[list[str]]]
    log: str


def run_inline(
    root: Path, dags: Path, dag_id: str, toy: Path, scenarios: list[Scenario]
) -> dict[str, InlineRun]:
    """Run all scenarios one after the other, on an Airflow of their own below `root`."""
    record_format(Home(root / "home"))  # as real stages do: the stand-in writes files alone
    asked = root / "scenarios.json"
    asked.write_text(json.dumps([scenario.__dict__ for scenario in scenarios]))
    done = subprocess.run(
        [sys.executable, __file__, str(asked), dag_id, str(toy)],
        env=own_airflow(root / "airflow")
        | {
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
            "FOREBAY_HOME": str(root / "home"),
            "PYTHONPATH": str(TESTS),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    found = json.loads((root / "runs.json").read_text())
    logs = done.stdout.split("== scenario ")[1:]
    return {
        name: InlineRun(**run, log=next(text for text in logs if text.startswith(f"{name} ")))
        for name, run in found.items()
    }


def _main(asked: Path, dag_id: str, toy: Path) -> None:
    from airflow.dag_processing.dagbag import BundleDagBag
    from airflow.sdk import timezone
    from airflow.utils.db import initdb

    from support.toy_stage import ToyStage

    initdb()
    folder = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="dags-folder")
    assert not bag.import_errors, bag.import_errors
    stand_in, runs = ToyStage(toy), {}
    for scenario in json.loads(asked.read_text()):
        stand_in.answer(**scenario["answers"])
        print(f"== scenario {scenario['name']} ", flush=True)
        date = scenario["logical_date"]
        run = bag.dags[dag_id].test(
            logical_date=None if date is None else timezone.parse(date), run_conf=scenario["conf"]
        )
        calls = {stage: stand_in.calls(stage) for stage in scenario["answers"]}
        runs[scenario["name"]] = {**_ended(run), "calls": calls}
    (asked.parent / "runs.json").write_text(json.dumps(runs))


def _ended(run: Any) -> dict[str, Any]:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        tasks = {each.task_id: each.state for each in run.get_task_instances(session=session)}
        mine = select(XComModel).where(
            XComModel.dag_id == run.dag_id, XComModel.run_id == run.run_id
        )
        values = list(session.scalars(mine))
        links: dict[str, dict[str, str]] = {}
        for each in values:
            if each.key.startswith("_link_"):
                links.setdefault(each.task_id, {})[each.key] = each.value
        returned = {each.task_id: _value(each) for each in values if each.key == "return_value"}
    return {"state": str(run.state), "tasks": tasks, "returned": returned, "links": links}


def _value(stored: Any) -> Any:
    return json.loads(stored.value) if isinstance(stored.value, str) else stored.value


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
