"""What the documents claim: links and tests that exist, a script that computes the row sums."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel, ValidationError
from support import independent

from forebay.config.specs.base import format_duration
from forebay.config.specs.features import FeatureSpec
from forebay.config.specs.jobs import PLANES, RolesSpec, TrainerRoleSpec
from forebay.config.specs.models import ModelSpec, TowerSpec
from forebay.config.specs.pipelines import ScheduleSpec
from forebay.config.specs.windows import WindowSize
from forebay.operators.runs import task_ids

PAGES = [
    *(Path(name) for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted(Path("docs").rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_somewhere_and_every_named_test_exists(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    for target in targets:
        assert target.startswith("https://") or (page.parent / target).exists(), target
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text()):
        tree = ast.parse(Path(file).read_text())
        assert name in {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
        }, f"{file}::{name}"


def test_what_people_are_told_to_type_exists() -> None:
    text, readme = (Path(page).read_text() for page in ("CONTRIBUTING.md", "README.md"))
    paths = set(re.findall(r"\btests/[\w/.]+\b", text))
    assert len(paths) > 10
    assert [path for path in paths if not Path(path).exists()] == []
    for path, word in re.findall(r"pytest (\S+) -k (\w+)", text):
        assert re.search(rf"^def test_\w*{word}", Path(path).read_text(), re.MULTILINE)
    targets = set(re.findall(r"^([a-z-]+):", Path("Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", text + readme)) <= targets


def test_every_key_of_the_schedule_is_explained_and_every_task_has_its_states() -> None:
    text = Path("docs/airflow.md").read_text()
    for name, field in ScheduleSpec.model_fields.items():
        (row,) = [
            line for line in text.splitlines() if line.startswith("| `") and f"`{name}`" in line
        ]
        default = field.get_default(call_default_factory=True)
        shown = format_duration(default) if isinstance(default, timedelta) else str(default)
        assert default == [] or shown.lower() in row, row
    names = [value for key, value in vars(task_ids).items() if key.isupper()]
    assert len(names) == 8
    for name in names:
        shown = "sources.<name>" if name == task_ids.SOURCES else name
        assert f"| `{shown}` |" in text


def said(model: type[BaseModel], field: str) -> tuple[str, ...]:
    """The texts that a field takes."""
    return get_args(model.model_fields[field].annotation)


def test_limits_are_those_of_the_code() -> None:
    text = " ".join(Path("docs/limits.md").read_text().split())
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    with pytest.raises(ValidationError, match="a job has one trainer"):
        TrainerRoleSpec(count=2)
    assert set(RolesSpec.model_fields) == {"data", "trainer"}, "no parameter servers"
    assert [point.name for point in entry_points(group=PLANES)] == ["inline", "local"]
    assert said(ModelSpec, "kind") == ("towers", "count")
    assert set(TowerSpec.model_fields) == {"hidden"}, "of dense layers"
    assert not re.search("nvidia|cuda", Path("requirements.lock").read_text())
    encodings = [said(each, "encode")[0] for each in get_args(FeatureSpec)]
    sizes = list(map(str, WindowSize))
    assert ", ".join(f"`{one}`" for one in encodings[:-1]) + f" and `{encodings[-1]}`." in text
    assert f"an hour or a day: `{sizes[0]}` or `{sizes[1]}`." in text
    assert len(sizes) == 2
    assert project["requires-python"] == ">=3.11,<3.14"
    assert project["optional-dependencies"]["airflow"] == ["apache-airflow>=3.3.2,<3.4"]
    assert "Python 3.11 to 3.13, Airflow 3.3 if any" in text
    assert [name for name in project["entry-points"] if name.startswith("forebay")] == [
        "forebay.planes",
        "forebay.sources",
    ], "source kinds, planes and roles can be added, encodings and models cannot"


def test_the_script_computes_the_row_sums(tmp_path: Path) -> None:
    page = Path("docs/internals/guarantees.md").read_text()
    (script,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    random = np.random.default_rng(5)
    for day in range(3):
        times = np.datetime64(f"2026-03-0{day + 1}", "s") + random.integers(0, 86_400, 500)
        labels = pa.array([None if one < 0.1 else one > 0.5 for one in random.random(500)])
        folder = tmp_path / f"date=2026-03-0{day + 1}"
        folder.mkdir()
        table = pa.table({"happened": pa.array(times.astype("datetime64[us]")), "label": labels})
        pq.write_table(table, folder / "part.parquet", row_group_size=100)
    span = ("2026-03-01T06:00:00", "2026-03-03")
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), "happened", *span, "label"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    where = f"happened >= '{span[0]}' and happened < '{span[1]}' and label is not null"
    expected = independent.parquet_sums(tmp_path, where)
    assert [int(part) for part in ended.stdout.split()] == list(expected.values())
    assert 0 < expected["rows"] < 1000
