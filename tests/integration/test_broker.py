"""The embedded broker: idempotent start, a stop that leaves nothing, honest errors."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from support.planted import (
    CERTIFICATES,
    CONNECTION,
    DECLARED,
    PLANTED,
    STORAGE_KEY,
    UNKNOWN,
    planted_in,
)
from support.there import there

from forebay.datatasks.sources.kafka.client import Cluster
from forebay.datatasks.sources.kafka.producer import create_topic, publish
from forebay.embedded.kafka.broker import Broker
from forebay.embedded.kafka.runtime import class_path, find_java, kafka_jars, verify_jars
from forebay.embedded.ports import free_ports
from forebay.errors import InfrastructureError
from forebay.home.paths import Home

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("closed_sockets")]
LONG_AGO = datetime(2013, 6, 1, tzinfo=UTC)


@pytest.fixture
def environ() -> dict[str, str]:
    """Of a site that has keys."""
    kept = {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP"}
    return {**kept, **PLANTED}


@pytest.fixture
def broker(tmp_path: Path, environ: dict[str, str]) -> Iterator[Broker]:
    made = Broker(Home(tmp_path / "home"), environ)
    yield made
    made.stop()


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


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


def test_a_stopped_and_a_killed_broker_come_back_with_address_and_records(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not broker.status().running
    with monkeypatch.context() as patch:  # a cluster id that begins with a dash
        patch.setattr("uuid.uuid4", lambda: uuid.UUID(bytes=b"\xfb" + bytes(15)))
        first = broker.start()
    pid = there(first.pid)
    process = psutil.Process(pid)
    assert planted_in([process]) == [set()]
    assert process.environ()["PATH"] == os.environ["PATH"]
    assert process.environ()["FOREBAY_JOB_ID"] == "kafka"
    assert os.getsid(pid) == pid
    listening = [each for each in process.net_connections() if each.status == "LISTEN"]
    assert listening
    assert {each.laddr.ip.removeprefix("::ffff:") for each in listening} == {"127.0.0.1"}
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (broker.log.parent, broker.log)]
    assert modes == [0o700, 0o600]
    assert broker.start() == first
    assert broker.status() == first
    create_topic(first.bootstrap, "old", 1)
    publish(first.bootstrap, "old", [(b"a", LONG_AGO, 0), (b"b", LONG_AGO + timedelta(days=99), 0)])
    assert broker.stop()
    assert not _runs(pid)
    assert not broker.stop()
    again = broker.start()
    assert again.bootstrap == first.bootstrap
    assert again.pid != pid
    os.kill(there(again.pid), signal.SIGKILL)
    os.waitpid(there(again.pid), 0)
    assert not broker.status().running
    assert broker.start().bootstrap == first.bootstrap
    with Cluster(again.bootstrap) as cluster:
        topic = there(cluster.topic("old"))
        assert cluster.stable_ends(topic)[0].offset == 2
        assert cluster.first_offsets(topic) == {0: 0}
        assert cluster.kept_since(topic) is None


def test_the_command_outlives_its_starter(tmp_path: Path, environ: dict[str, str]) -> None:
    home = tmp_path / "home"
    assert command(home, environ, "status").stdout == "no broker is running\n"
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
    program(tmp_path / "java", "echo 'openjdk version \"11.0.2\"' >&2")
    with pytest.raises(InfrastructureError, match="is Java 11"):
        find_java({"PATH": str(tmp_path)})
    empty = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(InfrastructureError, match="package maven"):
        kafka_jars(Path("java"), empty)
    program(tmp_path / "mvn", "echo 'no repository answers'\nexit 1")
    with pytest.raises(InfrastructureError, match="no repository answers"):
        kafka_jars(Path("java"), empty)
    assert not list((tmp_path / "cache").rglob("*.jar"))


def test_maven_gets_what_a_download_needs(tmp_path: Path, environ: dict[str, str]) -> None:
    """Its plug-ins are programs that it fetches; settings of its user may name a password."""
    settings = tmp_path / "maven" / "conf" / "settings.xml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"<password>${{env.{DECLARED}}}</password>")
    maven = tmp_path / "maven" / "bin" / "mvn"
    program(maven, f"env > {tmp_path / 'inherited'}\nexit 1")
    found = {
        **environ,
        "PATH": f"{maven.parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "https_proxy": "http://proxy:3128",
        "MAVEN_OPTS": "-Xmx1g",
    }
    with pytest.raises(InfrastructureError, match="Maven could not fetch Kafka"):
        kafka_jars(find_java(environ), found)
    inherited = (tmp_path / "inherited").read_text()
    assert [name for name in (STORAGE_KEY, UNKNOWN, CONNECTION) if name in inherited] == []
    expected = (PLANTED[DECLARED], CERTIFICATES, "http://proxy:3128", "-Xmx1g")
    assert [value for value in expected if value not in inherited] == []


@pytest.fixture
def cache(tmp_path: Path, environ: dict[str, str]) -> Path:
    """A cache of its own with the jars of this machine's."""
    jars = kafka_jars(find_java(environ), environ)
    copied = tmp_path / "cache" / "forebay" / jars.name
    copied.parent.mkdir(parents=True)
    shutil.copytree(jars, copied, copy_function=os.link)
    return copied


def change_a_byte(jar: Path) -> str:
    """The jar, one byte of which is another one: its new SHA-256."""
    content = bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.unlink()  # the other name of the file stays as it is
    jar.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


@pytest.mark.guarantee(
    "one of Kafka's jars does not have the checksum that Forebay knows",
    "nothing; the embedded broker does not start, and names the file, both checksums and what "
    "to do",
)
def test_a_jar_that_was_changed_in_the_cache_is_not_run(
    tmp_path: Path, cache: Path, environ: dict[str, str]
) -> None:
    jar = cache / "kafka-clients-4.3.1.jar"
    expected = hashlib.sha256(jar.read_bytes()).hexdigest()
    changed = change_a_byte(jar)
    broker = Broker(Home(tmp_path / "home"), environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    with pytest.raises(InfrastructureError) as refused:
        broker.start()
    said = str(refused.value)
    words = (str(jar), changed, expected, f"Remove {cache}", "KAFKA_BOOTSTRAP")
    assert [word for word in words if word not in said] == []
    assert not broker.status().running
    jar.unlink()
    with pytest.raises(InfrastructureError, match=r"kafka-clients-4.3.1.jar is missing\. Remove"):
        broker.start()


def test_a_jar_that_is_fetched_as_another_file_never_comes_into_the_cache(
    tmp_path: Path, cache: Path, environ: dict[str, str]
) -> None:
    fetched = cache.rename(tmp_path / "repository")
    changed = change_a_byte(fetched / "zstd-jni-1.5.6-10.jar")
    copies = f"-DoutputDirectory=*) cp -r {fetched} ${{word#*=}};;"
    program(tmp_path / "mvn", f"for word; do case $word in\n{copies}\nesac; done")
    found = environ | {
        "PATH": f"{tmp_path}:{environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    with pytest.raises(InfrastructureError, match=rf"zstd-jni.*{changed}.*Maven fetched it"):
        kafka_jars(find_java(environ), found)
    assert not list((tmp_path / "cache").rglob("*.jar"))


def test_a_jar_beside_the_known_ones_is_not_loaded(cache: Path) -> None:
    (cache / "aaa-strangers.jar").write_bytes(b"")
    verify_jars(cache, "")
    paths = class_path(cache).split(":")
    known = {path.name for path in cache.iterdir()} - {"aaa-strangers.jar"}
    assert {Path(path).name for path in paths} == known


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
