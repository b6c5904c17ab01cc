"""`forebay check`: text and JSON, exit codes, caret on a terminal, storage, and what it imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import terminals
from support.declarations import declarations, write
from support.projects import Project

from forebay.cli import run
from forebay.config.specs.sources import SourceSpec
from forebay.errors import InfrastructureError, MissingExtraError

HEAVY = ["pyarrow", "tensorflow", "kafka", "pyiceberg", "pandas", "numpy", "rich", "grpc"]
TYPES = "string, int, float, bool, timestamp, list<string>, list<int>, list<float>"
HISTORY = """\
kind: parquet
options: {path: data}
columns: {event: int, at: timestamp, user: string, clicked: int}
event_time: at
"""


def forebay(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return Project(folder, environment=environment).forebay(*arguments, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "config/sources").mkdir(parents=True)
    (tmp_path / "config/sources/history.yaml").write_text(HISTORY)
    return tmp_path


def change(project: Path, old: str, new: str) -> None:
    file = project / "config/sources/history.yaml"
    file.write_text(file.read_text().replace(old, new))


def test_all_problems_as_text(project: Path) -> None:
    change(project, "path: data", "paht: data")
    change(project, "clicked: int", "clicked: itn")
    result = forebay(project, "check")
    assert result.returncode == 1
    file = "config/sources/history.yaml"
    assert result.stdout.splitlines() == [
        f"{file}:2:11: unknown key 'paht' in options (did you mean path?)",
        f"{file}:3:61: columns.clicked: 'itn' is not one of {TYPES} (did you mean int?)",
    ]
    assert result.stderr == "1 source, 0 pipelines: 2 problems\n"


def test_the_fixed_form_of_json_and_a_caret_in_a_terminal(project: Path) -> None:
    change(project, "event_time", "event_tmie")
    result = forebay(project, "check", "--output", "json")
    assert (result.returncode, result.stderr) == (1, "")
    assert json.loads(result.stdout) == [
        {
            "file": "config/sources/history.yaml",
            "line": 4,
            "column": 1,
            "code": "unknown-key",
            "message": "unknown key 'event_tmie' at the top of the file",
            "hint": "event_time",
        }
    ]
    seen = terminals.in_terminal(terminals.forebay("check"), project, {})
    assert seen.exit_code == 1
    place = seen.lines.index("    event_tmie: at")
    assert seen.lines[place + 1] == "    ^"


def test_notes_fail_nothing_and_are_no_data(tmp_path: Path) -> None:
    files = declarations()
    files["pipelines/ads.yaml"]["dataset"]["streams"]["history"]["weight"] = 8
    write(tmp_path / "config", files)
    result = forebay(tmp_path, "check", "--output", "json")
    assert (result.returncode, result.stdout) == (0, "[]\n")
    assert "note: stream 'history' has 8 times the weight of 'fresh'" in result.stderr


def test_options_from_the_environment(project: Path) -> None:
    (project / "config").rename(project / "declared")
    result = forebay(project, "check", FOREBAY_CONFIG="declared", FOREBAY_OUTPUT="json")
    assert (result.returncode, result.stdout) == (0, "[]\n")


def test_connect_compares_with_the_storage(project: Path) -> None:
    columns = {"event": [1], "at": pa.array([0], pa.timestamp("us")), "usr": ["a"]}
    (project / "data").mkdir()
    pq.write_table(pa.table({**columns, "clicked": [1]}), project / "data/a.parquet")
    assert forebay(project, "check").returncode == 0
    result = forebay(project, "check", "--connect")
    assert result.returncode == 1
    assert result.stdout.startswith("config/sources/history.yaml:3:38: ")
    assert "user" in result.stdout
    pq.write_table(pa.table({**columns, "user": ["a"], "clicked": [1]}), project / "data/a.parquet")
    result = forebay(project, "check", "--connect")
    assert (result.returncode, result.stdout) == (0, "1 source, 0 pipelines: no problems\n")


def test_connect_to_a_storage_that_is_down(project: Path) -> None:
    change(project, "kind: parquet", "kind: kafka")
    change(project, "{path: data}", "{bootstrap: 'localhost:1', topic: clicks}")
    assert forebay(project, "check").returncode == 0
    result = forebay(project, "check", "--connect", "--output", "json")
    assert result.returncode == 4
    assert json.loads(result.stdout) == []
    assert result.stderr.startswith("error: source 'history': ")
    assert "Traceback" not in result.stderr


def test_an_outage_hides_no_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(spec: SourceSpec, root: Path) -> None:
        raise failures[spec.name]

    failures = {"a": MissingExtraError("kind a needs an extra"), "b": InfrastructureError("down")}
    for name in failures:
        write(tmp_path, {f"sources/{name}.yaml": declarations()["sources/parquet.yaml"]})
    monkeypatch.setattr("forebay.datatasks.planning.open_source.open_source", refuses)
    assert run(["check", "--connect", "--config", str(tmp_path)]) == 1
    assert "source 'b': down" in capsys.readouterr().err


def test_check_imports_nothing_heavy(tmp_path: Path) -> None:
    write(tmp_path / "config", declarations())
    code = (
        "import sys; from forebay.cli import run; code = run(['check']);"
        f"print([name for name in {HEAVY} if name in sys.modules]); sys.exit(code)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "[]"
