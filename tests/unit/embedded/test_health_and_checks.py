"""What Airflow reports of its parts, and what the machine is missing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.there import there

from forebay import cli
from forebay.embedded import checks
from forebay.embedded.airflow.components import NAMES, component_health, last_beat
from forebay.embedded.checks import all_checks, essential_checks
from forebay.embedded.layout import Layout
from forebay.executors.link import sockets
from forebay.home import privacy
from forebay.home.paths import Home

BEAT = "2026-03-01T07:00:00.5+00:00"
REPORT = {
    "metadatabase": {"status": "healthy"},
    "scheduler": {"status": "healthy", "latest_scheduler_heartbeat": BEAT},
    "triggerer": {"status": "unhealthy", "latest_triggerer_heartbeat": None},
    "dag_processor": None,
}


def test_every_component_has_its_health_and_its_beat() -> None:
    found = component_health(REPORT)
    assert set(found) == set(NAMES)
    healthy = {name for name, health in found.items() if health == "healthy"}
    assert healthy == {"postgres", "api-server", "scheduler"}
    assert there(last_beat(REPORT, "scheduler")) == datetime.fromisoformat(BEAT)
    assert last_beat(REPORT, "triggerer") is last_beat(REPORT, "dag-processor") is None


def doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, Any]]]:
    code = cli.run(["doctor", "--output", "json"])
    return code, {row["check"]: row for row in json.loads(capsys.readouterr().out)}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("AIRFLOW__")]:
        monkeypatch.delenv(name)
    return tmp_path / "home"


def test_a_fit_machine_has_no_failure(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    code, found = doctor(capsys)
    assert code == 0, found
    names = {"python", "platform", "home", "disk (home)", "memory", "ports", "sockets"}
    assert names <= set(found)
    assert all(row["remedy"] is None for row in found.values() if row["state"] == "ok")
    assert not home.exists()  # looking changes nothing


USAGE, SOCKET = shutil.disk_usage("/"), sockets.socket.socket


def little(_: object) -> object:
    return USAGE._replace(free=1000)


def refuse(*_: object) -> None:
    raise OSError("Operation not supported")


@pytest.mark.parametrize(
    ("name", "place", "attribute", "value", "words"),
    [
        ("disk (home)", checks.shutil, "disk_usage", little, "FOREBAY_HOME; free some space"),
        ("memory", checks, "available_bytes", lambda: 1000, "more memory"),
        ("python", checks.sys, "version_info", (3, 10, 1), "install Python 3.11"),
        ("extra embedded", sys.modules, "asyncpg", None, "pip install 'forebay[embedded]'"),
        ("platform", checks.platform, "system", lambda: "Darwin", "Linux"),
        ("ports", SOCKET, "bind", refuse, "ip link set lo up"),
        ("sockets", SOCKET, "bind", refuse, "FOREBAY_HOME; local file system"),
        ("home", os.environ, "FOREBAY_HOME", __file__, "FOREBAY_HOME"),
    ],
)
def test_each_failure_has_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    place: Any,
    attribute: str,
    value: object,
    words: str,
) -> None:
    patched = monkeypatch.setitem if isinstance(place, Mapping) else monkeypatch.setattr
    patched(place, attribute, value)
    code, found = doctor(capsys)
    assert (code, found[name]["state"]) == (4, "failure")
    assert [word for word in words.split("; ") if word not in found[name]["remedy"]] == []


def test_a_home_of_any_depth_holds_the_sockets_of_jobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    deep = tmp_path.joinpath(*["a-folder-below-a-folder"] * 8)
    deep.mkdir(parents=True)
    monkeypatch.setenv("FOREBAY_HOME", str(deep))
    code, found = doctor(capsys)
    assert (code, found["sockets"]["found"]) == (0, f"{deep} can hold Unix sockets")
    assert list(deep.iterdir()) == []


def test_up_refuses_an_unfit_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(checks, "available_bytes", lambda: 1000)
    (tmp_path / "config").mkdir()
    assert cli.run(["up", "--config", str(tmp_path / "config")]) == 4
    assert "this machine is not ready: memory" in capsys.readouterr().err
    assert not (home / "airflow" / "endpoint.json").exists()


def test_a_store_of_somebody_else_is_a_failure(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "elsewhere"
    store.mkdir(mode=0o700)
    monkeypatch.setenv("FOREBAY_STORE", str(store))
    monkeypatch.setattr(privacy, "_trusted", lambda: (os.geteuid() + 1,))
    remedies = [each.remedy for each in all_checks(Layout(Home(home))) if each.found == str(store)]
    assert len(remedies) == 1
    assert f"{store} belongs to " in remedies[0]


def test_what_is_a_warning_or_no_condition_of_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__PARALLELISM", "2")
    layout = Layout(Home(Path("h")))
    found = {one.name: one for one in all_checks(layout)}["environment"]
    assert (found.state, found.found) == ("warning", "AIRFLOW__CORE__PARALLELISM")
    essential = {one.name for one in essential_checks(layout)}
    assert {"extra embedded", "extra train"} & essential == {"extra embedded"}


def test_commands_without_an_airflow(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["status"]) == 4
    assert "`forebay up`" in capsys.readouterr().err
    assert cli.run(["airflow", "dags", "list", "--help"]) == 4
    assert "`forebay up` starts it" in capsys.readouterr().err
    assert cli.run(["down"]) == 0
    assert "no Airflow was running" in capsys.readouterr().out
    assert cli.run(["up", "--config", "nowhere"]) == 1
    assert "--config" in capsys.readouterr().err
