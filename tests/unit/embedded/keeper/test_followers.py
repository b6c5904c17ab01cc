"""Who follows lines: one process for each that declares it, anew when its declaration changes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from forebay.embedded.airflow.components import Component
from forebay.embedded.keeper.followers import Followers
from forebay.embedded.layout import Layout
from forebay.home.paths import Home


class Group:
    """In the place of a `ComponentGroup`: what was asked of it."""

    def __init__(self) -> None:
        self.running: dict[str, Component] = {}
        self.done: list[str] = []

    def start(self, component: Component) -> None:
        self.running[component.name] = component
        self.done.append(f"start {component.name}")

    def stop(self, names: Iterable[str], _seconds: float) -> None:
        self.done += [f"stop {name}" for name in names]

    def forget(self, name: str) -> None:
        del self.running[name]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(Home(tmp_path / "home"))
    made.create()
    return made


def declare(layout: Layout, folder: Path, **pipelines: str) -> None:
    layout.followed(folder).write_text(json.dumps(pipelines))


def test_they_are_started_anew_where_the_declaration_is_another_one(layout: Layout) -> None:
    folder, group = layout.root / "config", Group()
    components: Any = group
    followers = Followers(layout, [folder], components)
    followers.look()
    assert group.done == [], "no folder was read yet"
    declare(layout, folder, ads="1", shop="1")
    followers.look()
    followers.look()
    assert group.done == ["start follow-ads", "start follow-shop"]
    command = group.running["follow-ads"].command
    assert command[-5:] == ("run", "ads", "--follow", "--config", str(folder))
    declare(layout, folder, ads="2", shop="1")
    followers.look()
    assert group.done[2:] == ["stop follow-ads", "start follow-ads"]
    declare(layout, folder, ads="2")
    followers.look()
    assert (group.done[4:], list(group.running)) == (["stop follow-shop"], ["follow-ads"])
    followers.stop()
    assert (group.done[5:], group.running) == (["stop follow-ads"], {})


def test_each_folder_has_its_own(layout: Layout) -> None:
    one, other, group = layout.root / "one", layout.root / "other", Group()
    components: Any = group
    declare(layout, one, ads="1")
    declare(layout, other, shop="1")
    Followers(layout, [one, other], components).look()
    assert sorted(group.running) == ["follow-ads", "follow-shop"]
    assert str(other) in group.running["follow-shop"].command
