"""Airflow parses a folder of DAG files in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

# Takes the folder; the last line is JSON: task ids by DAG, and errors by file.
PARSE_DAGS = """
import json, sys
from pathlib import Path
from airflow.dag_processing.dagbag import BundleDagBag
folder = Path(sys.argv[1])
bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="canary")
tasks = {name: sorted(dag.task_ids) for name, dag in bag.dags.items()}
print(json.dumps({"tasks": tasks, "errors": bag.import_errors}))
"""


def own_airflow(home: Path) -> dict[str, str]:
    """The environment of an Airflow with its own home, nothing of the user's and no examples."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    return others | {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
