"""What Airflow imports is light: each task imports it anew, in an environment that is Airflow's.

import-linter follows the import statements; this is what happens when they run.
"""

from __future__ import annotations

import os
from pathlib import Path

from support.python_code import printed_json

HEAVY = {
    *("boto3", "grpc", "kafka", "numpy", "pandas", "pyarrow", "pyiceberg", "scipy", "tensorflow")
}
IMPORT = """
import json, sys
from importlib import import_module

found = {}
for name in sys.argv[1:]:
    import_module(name)
    found[name] = sorted({module.partition(".")[0] for module in sys.modules})
print(json.dumps(found))
"""


def modules() -> list[str]:
    """Every module of the folders that Airflow imports."""
    files = [path for room in ("operators", "dags") for path in Path(room).rglob("*.py")]
    parts = [path.with_suffix("").parts for path in sorted(files)]
    return [".".join(("forebay", *part)).removesuffix(".__init__") for part in parts]


def test_no_module_brings_a_heavy_package(tmp_path: Path) -> None:
    names = modules()
    assert {"forebay.operators.plugin", "forebay.dags.factory"} < set(names)
    library = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "_AIRFLOW__AS_LIBRARY": "1"}
    found = printed_json(IMPORT, library, *names)
    guilty = {name: sorted(HEAVY & set(roots)) for name, roots in found.items()}
    first = next(((name, heavy) for name, heavy in guilty.items() if heavy), None)
    assert first is None, f"{first[0]} is the first that brings {first[1]}" if first else ""
