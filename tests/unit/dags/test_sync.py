"""`forebay dags sync`: stubs come and go with pipelines; files of others are not touched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from support.projects import Project, ads_pipeline, clicks_source, declared_project, history_source
from support.python_code import printed

from forebay.dags.sync import Stub, followed, read_stub, sync
from forebay.errors import ConfigError


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return declared_project(tmp_path / "one")


@pytest.fixture
def config(project: Project) -> Path:
    return project.root / "config"


@pytest.fixture
def dags(tmp_path: Path) -> Path:
    return tmp_path / "dags"


def copy(config: Path, name: str) -> Path:
    path = config / "pipelines" / f"{name}.yaml"
    path.write_text((config / "pipelines" / "ads.yaml").read_text())
    return path


def test_a_stub_is_two_lines_that_airflow_opens(config: Path, dags: Path) -> None:
    assert sync(config, dags) == (["ads"], [], [])
    first, second = (dags / "ads.py").read_text().splitlines()
    assert first == "from forebay.dags.factory import pipeline"
    call, _, comment = second.partition("  # ")
    assert call == f'dag = pipeline("ads", config="{config}")'
    assert comment.startswith("airflow, ")  # without which Airflow does not open a file at all
    assert len(comment.removeprefix("airflow, ")) == 12


def test_it_writes_only_what_changed(config: Path, dags: Path) -> None:
    copy(config, "more")
    sync(config, dags)
    before = {path.name: path.stat().st_mtime_ns for path in dags.iterdir()}
    assert sync(config, dags) == ([], [], ["ads", "more"])
    assert {path.name: path.stat().st_mtime_ns for path in dags.iterdir()} == before
    assert sorted(before) == ["ads.py", "more.py"]


def test_a_change_of_yaml_changes_the_stubs_that_depend_on_it(
    project: Project, config: Path, dags: Path
) -> None:
    declared = ads_pipeline()
    declared["dataset"]["streams"]["clicks"]["sources"] = ["views"]
    (config / "pipelines" / "other.yaml").write_text(yaml.safe_dump(declared))
    project.write_source("views", clicks_source())
    sync(config, dags)
    project.write_source("clicks", clicks_source(starts="2026-03-02"))
    assert sync(config, dags) == (["ads"], [], ["other"])
    project.write_source("history", history_source(starts="2026-02-27"))
    assert sync(config, dags) == (["ads", "other"], [], [])
    # A source that a pipeline named before it was there.
    (config / "sources" / "clicks.yaml").unlink()
    assert sync(config, dags).written == ["ads"]
    for broken in ("dataset: [", "dataset:\n  streams: 7\n"):  # its error then stands in Airflow
        (config / "pipelines" / "other.yaml").write_text(broken)
        assert sync(config, dags).written == ["other"]


def test_stubs_of_pipelines_that_are_gone_are_removed(config: Path, dags: Path) -> None:
    copy(config, "more")
    sync(config, dags)
    (dags / "mine.py").write_text("import airflow  # a DAG of somebody's own\n")
    (config / "pipelines" / "more.yaml").unlink()
    assert sync(config, dags) == ([], ["more"], ["ads"])
    assert sorted(path.name for path in dags.iterdir()) == ["ads.py", "mine.py"]


def test_a_file_that_is_not_ours_is_never_touched(config: Path, dags: Path) -> None:
    dags.mkdir()
    foreign = dags / "ads.py"
    foreign.write_text("from forebay.dags.factory import pipeline\nprint('mine')\n")
    copy(config, "more")
    with pytest.raises(ConfigError, match=r"dags/ads\.py is not one of Forebay's stubs.*'ads'"):
        sync(config, dags)
    assert [path.name for path in dags.iterdir()] == ["ads.py"]  # and nothing half done
    foreign.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not one of Forebay's stubs"):
        sync(config, dags)


def test_two_folders_cannot_share_a_name(config: Path, dags: Path, tmp_path: Path) -> None:
    second = Project(tmp_path / "two", ads_pipeline())
    second.write_pipeline()
    other = second.root / "config"
    copy(other, "own")
    sync(config, dags)
    with pytest.raises(ConfigError, match=f"{config} and {other}"):
        sync(other, dags)
    (other / "pipelines" / "ads.yaml").unlink()
    assert sync(other, dags) == (["own"], [], [])
    assert sync(config, dags) == ([], [], ["ads"])  # each folder has its own stubs
    # A pipeline that moved from one folder to the other.
    ads = config / "pipelines" / "ads.yaml"
    ads.rename(other / "pipelines" / "ads.yaml")
    assert sync(other, dags).written == ["ads"]
    assert sync(config, dags) == ([], [], [])


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A slip in --config must not remove all DAGs."""
    with pytest.raises(ConfigError, match="no such folder"):
        sync(tmp_path / "nowhere", tmp_path / "dags")
    assert not (tmp_path / "dags").exists()


@pytest.mark.parametrize("folder", ["plain", "with 'quotes'", 'with "quotes"', "über\\lang"])
def test_any_path_survives(folder: str, tmp_path: Path) -> None:
    stub = Stub("ads", tmp_path / folder, "0123456789ab")
    path = tmp_path / stub.file_name
    path.write_text(stub.text)
    assert read_stub(path) == stub
    called: list[object] = []
    code = stub.text.replace("from forebay.dags.factory import pipeline", "")
    exec(code, {"pipeline": lambda name, config: called.extend([name, config])})
    assert called == ["ads", str(tmp_path / folder)]


def test_the_command(project: Project, config: Path, dags: Path) -> None:
    arguments = ["dags", "sync", "--config", str(config), "--dags", str(dags)]
    assert project.forebay(*arguments).stdout == f"wrote {dags / 'ads.py'}\n"
    assert project.forebay(*arguments).stdout == f"{dags}: 1 stub, all up to date\n"
    shown = json.loads(project.forebay(*arguments, "--output", "json").stdout)
    assert shown == {"written": [], "removed": [], "kept": ["ads"]}
    (dags / "ads.py").write_text("mine")
    refused = project.forebay(*arguments, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"error: {dags / 'ads.py'} is not one of Forebay's stubs")


def test_it_needs_no_airflow() -> None:
    """A keeper calls it every second; and the command line works without Airflow."""
    code = "import sys, forebay.dags.sync, forebay.provider; print('airflow' in sys.modules)"
    assert printed(code, os.environ) == "False\n"


def test_who_is_followed_declares_it_and_is_known_by_its_yaml(
    project: Project, config: Path, dags: Path
) -> None:
    assert followed(config) == {}
    project.pipeline["job"]["process"] = "continuous"
    project.write_pipeline()
    before = followed(config)
    assert before.keys() == {"ads"}
    project.write_source("clicks", clicks_source(bad_rows="dead_letter"))
    assert followed(config).keys() == {"ads"}
    assert followed(config) != before
    file = dags.parent / "followed.json"
    options = ("--config", str(config), "--dags", str(dags), "--followed", str(file))
    project.forebay("dags", "sync", *options)
    assert json.loads(file.read_text()) == followed(config)
    (config / "pipelines" / "ads.yaml").write_text("dataset: 1")
    assert followed(config) == {}
