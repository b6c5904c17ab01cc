"""One pipeline alone: what `load_project` finds about it, without opening files of others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.projects import Project, clicks_source, declared_project

from forebay.config.load import load_one, load_project
from forebay.config.yaml.files import read_text
from forebay.config.yaml.problems import Problem


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = declared_project(tmp_path)
    made.write_source("other", clicks_source())
    return made


def config(project: Project) -> Path:
    return project.root / "config"


def rewrite(project: Project, old: str, new: str) -> None:
    path = config(project) / "pipelines" / "ads.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_sound_pipeline_is_the_same(project: Project) -> None:
    one, whole = load_one(config(project), "ads"), load_project(config(project))
    assert (one.problems, one.pipeline("ads")) == ([], whole.pipeline("ads"))
    assert set(one.sources) == set(one.source_files) == {"history", "clicks"}


def test_files_of_others_are_not_opened(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def reading(path: Path) -> tuple[str, list[Problem]]:
        opened.append(path.name)
        return read_text(path)

    monkeypatch.setattr("forebay.config.checks.loaded.read_text", reading)
    (config(project) / "pipelines" / "broken.yaml").write_text("dataset: [")
    (config(project) / "sources" / "other.yaml").write_text("kind: [")
    (config(project) / "sources" / "other.yml").write_text("a second file of that name")
    assert load_one(config(project), "ads").problems == []
    assert sorted(opened) == ["ads.yaml", "clicks.yaml", "history.yaml"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- clicks", "- clics"),  # did you mean clicks?
        ("- clicks", "- othr"),  # nearest is a source that is not read
        *(("minibatch_rows: 1024", "minibatch_rows: -1"), ("column: clicked", "column: clickd")),
        ("window: 1d", "window: 1w"),
    ],
)
def test_its_problems_are_those_of_all(old: str, new: str, project: Project) -> None:
    rewrite(project, old, new)
    found = load_one(config(project), "ads").problems
    assert found
    assert found == load_project(config(project)).problems


def test_variables_come_from_what_is_given(project: Project) -> None:
    rewrite(project, "minibatch_rows: 1024", "minibatch_rows: ${ROWS}")
    assert (
        load_one(config(project), "ads", {"ROWS": "64"}).pipeline("ads").train.minibatch_rows == 64
    )
    (problem,) = load_one(config(project), "ads", {}).problems
    assert problem.code == "variable-not-set"


def test_a_bad_source_is_its_problem(project: Project) -> None:
    project.write_source("clicks", clicks_source(event_tme="at"))
    found = load_one(config(project), "ads").problems
    assert [problem.file for problem in found] == [str(config(project) / "sources" / "clicks.yaml")]
    assert found == load_project(config(project)).problems


def test_two_files_of_its_name(project: Project) -> None:
    (config(project) / "pipelines" / "ads.yml").write_text("")
    (problem,) = load_one(config(project), "ads").problems
    assert problem.code == "duplicate-name"
