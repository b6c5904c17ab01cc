"""The embedded broker: idempotent start, a stop that leaves nothing, honest errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from forebay.datatasks.sources.kafka.client import Cluster
from forebay.datatasks.sources.kafka.producer import create_topic, publish
from forebay.embedded.kafka.broker import Broker, free_ports
from forebay.embedded.kafka.runtime import find_java, kafka_jars
from forebay.errors import InfrastructureError
from forebay.home.paths import Home

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("closed_sockets")]
LONG_AGO = datetime(2013, 6, 1, tzinfo=UTC)


@pytest.fixture
def environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP"}


@pytest.fixture
def broker(tmp_path: Path, environ: dict[str, str]) -> Iterator[Broker]:
    made = Broker(Home(tmp_path / "home"), environ)
    yield made
    made.stop()


def command(
    home: Path, environ: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "forebay.cli", "kafka", *arguments],
        env={**environ, "FOREBAY_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_stopped_and_a_killed_broker_come_back_with_address_and_records(broker: Broker) -> None:
    assert not broker.status().running
    first = broker.start()
    assert first.pid is not None
    process = psutil.Process(first.pid)
    assert process.environ()["FOREBAY_JOB_ID"] == "kafka"
    assert os.getsid(first.pid) == first.pid
    listening = [each for each in process.net_connections() if each.status == "LISTEN"]
    assert listening
    assert {each.laddr.ip.removeprefix("::ffff:") for each in listening} == {"127.0.0.1"}
    assert broker.start() == first
    assert broker.status() == first
    create_topic(first.bootstrap, "old", 1)
    publish(first.bootstrap, "old", [(b"a", LONG_AGO, 0), (b"b", LONG_AGO + timedelta(days=99), 0)])
    assert broker.stop()
    assert not _runs(first.pid)
    assert not broker.stop()
    again = broker.start()
    assert again.bootstrap == first.bootstrap
    assert again.pid != first.pid
    assert again.pid is not None
    os.kill(again.pid, signal.SIGKILL)
    os.waitpid(again.pid, 0)
    assert not broker.status().running
    assert broker.start().bootstrap == first.bootstrap
    with Cluster(again.bootstrap) as cluster:
        topic = cluster.topic("old")
        assert topic is not None
        assert cluster.stable_ends(topic)[0].offset == 2
        assert cluster.first_offsets(topic) == {0: 0}
        assert cluster.kept_since(topic) is None


def test_the_command_outlives_its_starter(tmp_path: Path, environ: dict[str, str]) -> None:
    home = tmp_path / "home"
    assert command(home, environ, "status").stdout == "no broker runs\n"
    started = command(home, environ, "start", "--output", "json")
    assert started.returncode == 0, started.stderr
    facts = json.loads(started.stdout)
    assert facts["running"]
    assert facts["own"]
    try:
        time.sleep(0.2)
        assert json.loads(command(home, environ, "status", "--output", "json").stdout) == facts
        text = command(home, environ, "start").stdout
        assert text.startswith(f"Kafka serves at {facts['bootstrap']} (pid {facts['pid']}, log ")
        own = {**environ, "KAFKA_BOOTSTRAP": facts["bootstrap"]}
        checked = command(tmp_path / "other", own, "start")
        assert checked.stdout == f"Kafka serves at {facts['bootstrap']} (KAFKA_BOOTSTRAP)\n"
        assert not (tmp_path / "other").exists()
    finally:
        stopped = command(home, environ, "stop")
    assert stopped.stdout == "stopped\n"
    assert not _runs(facts["pid"])
    again = json.loads(command(home, environ, "stop", "--output", "json").stdout)
    assert again["stopped"] is False


def test_a_users_broker_that_is_down_is_exit_code_4(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    ran = command(tmp_path, {**environ, "KAFKA_BOOTSTRAP": "127.0.0.1:9"}, "start")
    assert ran.returncode == 4
    assert ran.stderr.startswith("error: no Kafka broker answers at 127.0.0.1:9")
    assert "Traceback" not in ran.stderr


def test_without_java_or_maven_the_error_names_the_package(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="openjdk-17-jre-headless"):
        find_java({"PATH": str(tmp_path)})
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(InfrastructureError, match="is Java 11"):
        find_java({"PATH": str(tmp_path)})
    empty = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(InfrastructureError, match="package maven"):
        kafka_jars(Path("java"), empty)
    failing = tmp_path / "mvn"
    failing.write_text("#!/bin/sh\necho 'no repository answers'\nexit 1\n")
    failing.chmod(0o755)
    with pytest.raises(InfrastructureError, match="no repository answers"):
        kafka_jars(Path("java"), empty)
    assert not list((tmp_path / "cache").rglob("*.jar"))


def test_a_cluster_id_that_begins_with_a_dash(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uuid.uuid4", lambda: uuid.UUID(bytes=b"\xfb" + bytes(15)))
    assert broker.start().running


def test_free_ports_differ_and_stay() -> None:
    ports = free_ports(0, 0)
    assert len(set(ports)) == 2
    assert free_ports(*ports) == ports
    assert len(set(free_ports(ports[0], ports[0]))) == 2


def test_a_broker_that_cannot_run_shows_its_last_words(broker: Broker, tmp_path: Path) -> None:
    meta = tmp_path / "home" / "kafka" / "data" / "meta.properties"
    meta.parent.mkdir(parents=True)
    meta.write_text("version=1\nnode.id=7\n")
    with pytest.raises(InfrastructureError, match=r"meta\.properties"):
        broker.start()
    assert not broker.status().running


def _runs(pid: int) -> bool:
    """Whether the process is there, and not only waits for its parent to reap it."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
