"""YAML files that change while Airflow runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.toy_roles.jobs import eventually

from forebay.embedded.airflow.components import Component
from forebay.embedded.keeper.watch import ConfigWatch, signature
from forebay.embedded.layout import Layout
from forebay.home.paths import Home


class Launched:
    """Commands in place of `forebay dags sync`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.components: list[Component] = []
        self.script = "exit 0"

    def __call__(self, component: Component) -> subprocess.Popen[bytes]:
        self.components.append(component)
        with self._layout.log(component.name).open("ab") as log:
            return subprocess.Popen(["/bin/sh", "-c", self.script], stderr=log)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(Home(tmp_path / "home"))
    layout.create()
    return layout


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    (folder / "pipelines").mkdir(parents=True)
    (folder / "pipelines" / "ads.yaml").write_text("a: 1\n")
    return folder


@pytest.fixture
def launched(layout: Layout) -> Launched:
    return Launched(layout)


@pytest.fixture
def watch(layout: Layout, config: Path, launched: Launched) -> ConfigWatch:
    return ConfigWatch(layout, [config], launched)


def settle(watch: ConfigWatch) -> None:
    def settled() -> bool:
        watch.look()
        return watch.settled

    eventually(settled)


def test_it_writes_once_and_then_only_after_changes(
    watch: ConfigWatch, launched: Launched, config: Path
) -> None:
    assert not watch.settled
    for _ in range(3):
        settle(watch)
    assert len(launched.components) == 1
    (config / "pipelines" / "new.yaml").write_text("b: 2\n")
    settle(watch)
    assert len(launched.components) == 1  # it may still be being written
    settle(watch)
    assert len(launched.components) == 2
    assert str(config) in launched.components[-1].command


def test_what_stood_in_the_way_is_told_until_it_is_gone(
    watch: ConfigWatch, launched: Launched, config: Path
) -> None:
    launched.script = "echo first >&2; echo 'error: disk full' >&2; exit 4"
    settle(watch)
    assert watch.error == "error: disk full"
    launched.script = "exit 0"
    (config / "pipelines" / "ads.yaml").unlink()
    for _ in range(3):
        settle(watch)
    assert watch.error is None


@pytest.mark.parametrize("change", ["add", "write", "remove", "replace", "others"])
def test_every_change_is_seen_but_of_other_files(config: Path, change: str) -> None:
    before = signature([config])
    path = config / "pipelines" / "ads.yaml"
    if change == "add":
        (config / "sources").mkdir()
        (config / "sources" / "clicks.yml").write_text("")
    elif change == "write":
        path.write_text("a: 2\nb: 3\n")
    elif change == "remove":
        path.unlink()
    elif change == "replace":
        other = config / "other"
        other.write_text("a: 9\n")
        other.replace(path)
    else:
        (config / "pipelines" / ".ads.yaml.swp").write_text("x")
        (config / "notes.txt").write_text("x")
    assert (signature([config]) != before) is (change != "others")


def test_dag_files_of_a_folder_that_is_not_named_any_more_go(
    watch: ConfigWatch, layout: Layout, config: Path, tmp_path: Path
) -> None:
    for folder in (config, tmp_path / "old"):
        layout.stubs(folder).mkdir()
    (layout.dags / "mine").mkdir()
    (layout.dags / "by_hand.py").touch()
    watch.remove_others()
    left = {path.name for path in layout.dags.iterdir()}
    assert left == {layout.stubs(config).name, "mine", "by_hand.py"}
