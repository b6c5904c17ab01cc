"""One locked set of versions holds everything: it imports, Airflow parses, the lock is complete."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MODULES = {
    "apache-airflow": "airflow",
    "pyarrow": "pyarrow",
    "kafka-python": "kafka",
    "tensorflow": "tensorflow",
    "pyiceberg": "pyiceberg",
    "scipy": "scipy",
    "pandas": "pandas",
    "grpcio": "grpc",
}
IMPORT_ALL = """
import importlib, sys
from forebay.mixture.tensorflow_start import start_tensorflow
start_tensorflow(1)
for module in sys.argv[1:]:
    importlib.import_module(module)
"""
ONE_TASK = '''\
"""An Airflow DAG with one task."""

from airflow.sdk import dag, task


@dag(dag_id="canary", schedule=None)
def canary():
    @task
    def only() -> int:
        return 1

    only()


canary()
'''
PARSE = """
import json, sys
from pathlib import Path
from airflow.dag_processing.dagbag import BundleDagBag
folder = Path(sys.argv[1])
bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="canary")
tasks = {name: sorted(dag.task_ids) for name, dag in bag.dags.items()}
print(json.dumps({"tasks": tasks, "errors": bag.import_errors}))
"""
LOCK = Path("requirements.lock").read_text()
PINNED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]*[^\\\s]))?"
    r"(?P<hashes>(?: \\\n    --hash=\S+)*)",
    re.MULTILINE,
)


def locked() -> dict[str, str]:
    """Versions for this Python and platform: the lock serves others too."""
    return {
        canonicalize_name(found["name"]): found["version"]
        for found in PINNED.finditer(LOCK)
        if not found["marker"] or Marker(found["marker"]).evaluate()
    }


def declared() -> dict[str, list[str]]:
    """Requirements of pyproject: "" for the ones that everyone has, and one entry per extra."""
    project: dict[str, Any] = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


@pytest.fixture
def airflow_environment(tmp_path: Path) -> dict[str, str]:
    """Airflow with a home of its own, nothing of the user's and no examples."""
    others = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}
    home = str(tmp_path / "airflow")
    return others | {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


def run(code: str, *arguments: str, environment: dict[str, str]) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_large_dependency_imports(airflow_environment: dict[str, str]) -> None:
    assert set(MODULES) <= set(locked())
    run(IMPORT_ALL, *MODULES.values(), environment=airflow_environment)


def test_airflow_parses_a_dag(tmp_path: Path, airflow_environment: dict[str, str]) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/canary.py").write_text(ONE_TASK)
    printed = run(PARSE, str(tmp_path / "dags"), environment=airflow_environment)
    found = json.loads(printed.splitlines()[-1])
    assert found == {"tasks": {"canary": ["only"]}, "errors": {}}


def test_every_locked_version_has_hashes() -> None:
    pinned = list(PINNED.finditer(LOCK))
    assert [found["name"] for found in pinned if "--hash=sha256:" not in found["hashes"]] == []
    entries = [line for line in LOCK.splitlines() if re.match(r"[^#\s]", line)]
    assert len(pinned) == len(entries) > len(declared()[""])


def test_the_lock_names_no_address() -> None:
    """It must work with every mirror, and say nothing about the one that made it."""
    assert re.findall(r"\w+://\S*|--(?:extra-)?index-url.*|--find-links.*|^.* @ .*", LOCK) == []


def test_the_lock_satisfies_pyproject_and_what_that_needs() -> None:
    """Followed through the installed distributions, since nothing may be asked of a registry."""
    pins = locked()
    open_ends = [Requirement(line) for lines in declared().values() for line in lines]
    seen: set[tuple[str, str]] = set()
    wrong = []
    while open_ends:
        wanted = open_ends.pop()
        name = canonicalize_name(wanted.name)
        if name == "forebay":
            continue
        if name not in pins or not wanted.specifier.contains(pins[name], prereleases=True):
            wrong.append(f"{wanted}: locked {pins.get(name)}")
            continue
        new = {(name, extra) for extra in ("", *wanted.extras)} - seen
        seen |= new
        for line in importlib.metadata.requires(name) or [] if new else []:
            needed = Requirement(line)
            extras = [extra for _, extra in new]
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in extras):
                open_ends.append(needed)
    assert wrong == []


def test_the_environment_is_the_locked_one() -> None:
    installed = {
        canonicalize_name(found.metadata["Name"]): found.version
        for found in importlib.metadata.distributions()
    }
    pins = locked()
    wrong = {
        name: (installed.get(name), pins[name])
        for lines in declared().values()
        for name in (canonicalize_name(Requirement(line).name) for line in lines)
        if installed.get(name) != pins[name]
    }
    assert wrong == {}
