"""The embedded Airflow, really started once for all tests of this file."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.projects import Project
from support.there import eventually

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.components import NAMES
from forebay.embedded.airflow.http import ApiError, Endpoint
from forebay.embedded.airflow.rest import AirflowApi
from forebay.embedded.airflow.settings import MARK_NAME, component_environment
from forebay.embedded.postgres.place import database_place, wheel_programs
from forebay.errors import InfrastructureError
from forebay.home.paths import Home
from forebay.system.processes.identity import processes_with
from forebay.system.processes.parent import JOB_ID_NAME

# A second Airflow beside that of tests/acceptance/test_airflow.py is more than two cores carry.
pytestmark = pytest.mark.chaos

START_SECONDS = 240
PATIENCE_SECONDS = 180
BACK_SECONDS = 20
JOB = "toy.main.2026-03-01.g1"
BROKEN = "job:\n  model: {}\n"


@dataclass
class Cluster:
    """The running Airflow and what was there before it."""

    project: Project
    embedded: Embedded
    config: Path
    endpoint: Endpoint
    modes_before: dict[Path, int]

    def forebay(self, *words: str) -> tuple[int, str]:
        done = self.project.forebay(*words, check=False, timeout_seconds=START_SECONDS)
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")

    def status(self) -> tuple[int, dict[str, Any]]:
        code, output = self.forebay("status", "--output", "json")
        return code, json.loads(output)

    @property
    def api(self) -> AirflowApi:
        return AirflowApi(self.endpoint)

    def component(self, name: str) -> dict[str, Any]:
        code, told = self.status()
        assert code in {0, 4}
        found: dict[str, Any]
        (found,) = [row for row in told["components"] if row["component"] == name]
        return found


def modes(home: Path) -> dict[Path, int]:
    """Of all parents of everything that PostgreSQL's account may have to reach."""
    started = Path(sys.executable).parent
    ends = (home, wheel_programs(), Path(sys.prefix), started, Path("/var/lib"), Path("/tmp"))
    folders = {folder for end in ends for folder in (end, *end.resolve().parents)}
    return {folder: stat.S_IMODE(folder.stat().st_mode) for folder in sorted(folders)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    project = Project(tmp_path_factory.mktemp("embedded"))
    project.home.mkdir(mode=0o700)
    config = project.root / "config"
    (config / "pipelines").mkdir(parents=True)
    (config / "sources").mkdir()
    (config / "pipelines" / "broken.yaml").write_text(BROKEN)
    before = modes(project.home)
    embedded = Embedded(Home(project.home), [config])
    try:
        up = ("up", "--config", str(config), "--output", "json")
        printed = json.loads(project.forebay(*up, timeout_seconds=START_SECONDS).stdout)
        endpoint = Endpoint(printed["url"], printed["user"], printed["password"])
        yield Cluster(project, embedded, config, endpoint, before)
    finally:
        embedded.stop()
        embedded.remove_database()
        assert processes_with({MARK_NAME: str(embedded.layout.root)}) == []


def test_secrets_are_for_the_owner_alone(cluster: Cluster) -> None:
    layout = cluster.embedded.layout
    for path in (layout.passwords, layout.secrets, layout.settings):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    commands = [Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in marked(cluster)]
    secret = json.loads(layout.secrets.read_text())["jwt"].encode()
    assert len(secret) >= 64
    assert not [command for command in commands if secret in command]


def marked(cluster: Cluster) -> list[Any]:
    return processes_with({MARK_NAME: str(cluster.embedded.layout.root)})


def test_strangers_get_nothing(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match="401"):
        AirflowApi(Endpoint(cluster.endpoint.url, "admin", "guessed")).dags()


def test_it_listens_on_the_loopback_address_alone(cluster: Cluster) -> None:
    """Nothing of it listens on another address, and PostgreSQL on no port at all."""
    sockets = {
        str(link.readlink())
        for one in marked(cluster)
        for link in Path(f"/proc/{one.pid}/fd").iterdir()
        if link.is_symlink()
    }
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                listening.append(fields[1])
    port = int(cluster.endpoint.url.rsplit(":", 1)[1])
    assert listening == [f"0100007F:{port:04X}"]


def test_modes_of_all_parents_are_as_before(cluster: Cluster) -> None:
    assert modes(cluster.embedded.home.root) == cluster.modes_before
    place = database_place(cluster.embedded.layout)
    assert stat.S_IMODE(place.data.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.socket.stat().st_mode) == 0o700


def test_a_second_up_finds_it(cluster: Cluster) -> None:
    code, output = cluster.forebay("up", "--config", str(cluster.config))
    assert code == 0
    assert f"is already running at {cluster.endpoint.url}" in output
    assert cluster.endpoint.password not in output
    assert str(cluster.embedded.layout.passwords) in output


def test_another_configuration_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    code, output = cluster.forebay("up", "--config", str(tmp_path))
    assert code == 1
    assert "stop it with `forebay down`" in output


def test_broken_yaml_is_one_import_error(cluster: Cluster) -> None:
    (error,) = eventually(cluster.api.import_errors, PATIENCE_SECONDS)
    assert "broken.yaml:" in error["stack_trace"]


@pytest.mark.parametrize("name", ["api-server", "scheduler"])
def test_a_killed_component_is_back(cluster: Cluster, name: str) -> None:
    before = cluster.component(name)
    os.kill(before["pid"], signal.SIGKILL)
    killed = time.monotonic()
    eventually(lambda: is_back(cluster, name, before["pid"]), PATIENCE_SECONDS)
    seconds = time.monotonic() - killed
    print(f"{name} back after {seconds:.1f} s, load {os.getloadavg()[0]:.1f}")
    # The promise is for a machine that has time: a start is five to twelve seconds of a core.
    assert seconds < BACK_SECONDS * max(1.0, os.getloadavg()[0] / 2)
    assert cluster.component(name)["restarts"] == before["restarts"] + 1


def is_back(cluster: Cluster, name: str, dead: int) -> bool:
    (found,) = (one for one in cluster.embedded.status() if one.name == name)
    if found.pid in {None, dead} or found.started_at is None:
        return False
    try:
        health = AirflowApi(cluster.endpoint, 5.0).health()
    except InfrastructureError:
        return False
    if name == "api-server":
        return True
    beat = health[name][f"latest_{name}_heartbeat"]
    return bool(beat) and datetime.fromisoformat(beat) > found.started_at


def test_a_new_password_holds_at_once(cluster: Cluster) -> None:
    code, output = cluster.forebay(
        "up", "--config", str(cluster.config), "--new-password", "--output", "json"
    )
    found = json.loads(output)
    assert code == 0
    assert found["password"] != cluster.endpoint.password
    with pytest.raises(ApiError, match="401"):
        cluster.api.dags()
    cluster.endpoint = Endpoint(found["url"], found["user"], found["password"])
    cluster.api.dags()  # it answers


def test_a_killed_keeper_is_seen_and_replaced(cluster: Cluster) -> None:
    """Nothing that it kept is left alone, and `up` starts again."""
    state = cluster.embedded.state()
    assert state is not None
    os.kill(state.keeper_pid, signal.SIGKILL)
    eventually(lambda: cluster.status()[1]["state"] == "lost")  # a killed process takes its time
    code, lost = cluster.status()
    assert (code, lost["state"]) == (4, "lost")
    assert "`forebay up`" in lost["problem"]
    pid_file = database_place(cluster.embedded.layout).data / "postmaster.pid"
    eventually(lambda: not pid_file.exists())  # the database ends in good order, by itself
    code, output = cluster.forebay("up", "--config", str(cluster.config), "--output", "json")
    found = json.loads(output)
    assert (code, found["started"], found["url"]) == (0, True, cluster.endpoint.url)
    assert found["password"] is None  # it is the one that was shown
    assert cluster.status()[0] == 0


def test_down_leaves_no_process_and_names_the_jobs_it_ended(cluster: Cluster) -> None:
    layout = cluster.embedded.layout
    environment = {**component_environment(layout, "scheduler"), JOB_ID_NAME: JOB}
    job = subprocess.Popen(["/bin/sleep", "600"], env=environment, start_new_session=True)
    before = marked(cluster)
    assert len(before) > len(NAMES)
    code, output = cluster.forebay("down", "--output", "json")
    assert (code, json.loads(output)["cancelled_jobs"]) == (0, [JOB])
    assert job.wait(5) == -signal.SIGKILL
    assert marked(cluster) == []
    assert not [one for one in before if one.alive()]
    place = database_place(layout)
    assert not (place.data / "postmaster.pid").exists()
    code, told = cluster.status()
    assert (code, told["state"]) == (4, "stopped")
