"""One real Kafka broker (KRaft, one node) for the demo and the tests, below FOREBAY_HOME/kafka.

It listens on loopback only, has a session of its own, and outlives the process that starts it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass

from forebay.datatasks.sources.kafka.client import Cluster, wait_for_port
from forebay.embedded.kafka.runtime import JAVA_PROCESS, class_path, find_java, kafka_jars
from forebay.embedded.ports import free_ports
from forebay.errors import InfrastructureError
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.home.privacy import make_home
from forebay.system.environment import inherited
from forebay.system.files.durable import PRIVATE, PRIVATE_FOLDER, read_json, write_atomically
from forebay.system.files.locks import locked
from forebay.system.message import Message
from forebay.system.processes.identity import ProcessIdentity
from forebay.system.processes.parent import JOB_ID_NAME

BOOTSTRAP_NAME = "KAFKA_BOOTSTRAP"
# What the broker's process has in place of a job id.
BROKER_ID = "kafka"
START_SECONDS = 90.0
STOP_SECONDS = 20.0
_OWN_SECONDS = 3.0  # a user's own broker is either there or not
_LOCK_SECONDS = 700.0  # another start may be fetching Kafka
_POLL_SECONDS = 0.1
_LOG_LINES = 15
# The JVM's second compiler would save nothing in the minutes that a demo or a test runs.
_JVM_OPTIONS = (
    *("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config.AbstractConfig=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaConfig=warn",
)
# Records keep their producers' timestamps, which may be years old, and are never deleted. A killed
# broker can only register again once its session is over, so sessions are short.
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
log.retention.ms=-1
log.message.timestamp.type=CreateTime
log.message.timestamp.before.max.ms=9223372036854775807
log.message.timestamp.after.max.ms=9223372036854775807
message.max.bytes=33554432
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
offsets.retention.minutes=525600
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


class _Running(Message):
    """What `broker.json` records about the last start."""

    process: ProcessIdentity
    port: int
    controller_port: int


@dataclass(frozen=True)
class BrokerStatus:
    """Whether a broker runs, where, and whether it is ours (a user's own is never changed)."""

    running: bool
    bootstrap: str
    own: bool
    pid: int | None = None
    log: str = ""


class Broker:
    """The broker of one FOREBAY_HOME, or the user's own when KAFKA_BOOTSTRAP is set."""

    def __init__(self, home: Home, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._home = home
        self._folder = home.root.absolute() / "kafka"
        self.log = self._folder / "broker.log"
        self._state = self._folder / "broker.json"
        self._properties = self._folder / "server.properties"
        self._lock = self._folder / "broker.lock"

    def start(self, timeout_seconds: float = START_SECONDS) -> BrokerStatus:
        """Start the broker unless it already runs, and wait until it serves requests.

        Raises:
            InfrastructureError: when Java, Maven or the broker fail; the message says which.
        """
        if external := self._environ.get(BOOTSTRAP_NAME):
            wait_for_port(external, _OWN_SECONDS)
            with Cluster(external, timeout_seconds) as cluster:
                cluster.ping()
            return BrokerStatus(running=True, bootstrap=external, own=False)
        make_home(self._home)
        self._folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
        # Kafka creates what is below it by its umask; a copy of a home may have left it open.
        self._folder.chmod(PRIVATE_FOLDER)
        with locked(self._lock, _LOCK_SECONDS):
            running = self._running()
            if running is None:
                running = self._launch(self._last())
            self._wait_until_serving(running, timeout_seconds)
        return self._status_of(running)

    def stop(self, timeout_seconds: float = STOP_SECONDS) -> bool:
        """Stop the broker of this home; its records stay. False when none was running.

        Raises:
            InfrastructureError: when it does not end.
        """
        if not self._folder.is_dir():
            return False
        with locked(self._lock, _LOCK_SECONDS):
            running = self._running()
            if running is None:
                return False
            running.process.terminate()
            if not _ended(running.process, timeout_seconds):
                running.process.kill()
                if not _ended(running.process, timeout_seconds):
                    raise InfrastructureError(
                        f"the broker (pid {running.process.pid}) still runs after SIGKILL: check "
                        f"the disk (`ps -o pid,stat,wchan -p {running.process.pid}` shows what it "
                        "waits for)"
                    )
        return True

    def status(self) -> BrokerStatus:
        """Whether the broker runs; a user's own broker is asked."""
        if external := self._environ.get(BOOTSTRAP_NAME):
            try:
                with Cluster(external, call_seconds=2.0) as cluster:
                    cluster.ping()
            except InfrastructureError:
                return BrokerStatus(running=False, bootstrap=external, own=False)
            return BrokerStatus(running=True, bootstrap=external, own=False)
        running = self._running()
        if running is None:
            return BrokerStatus(running=False, bootstrap="", own=True, log=str(self.log))
        return self._status_of(running)

    def _status_of(self, running: _Running) -> BrokerStatus:
        address = f"127.0.0.1:{running.port}"
        return BrokerStatus(
            running=True, bootstrap=address, own=True, pid=running.process.pid, log=str(self.log)
        )

    def _last(self) -> _Running | None:
        return _Running.model_validate(read_json(self._state)) if self._state.exists() else None

    def _running(self) -> _Running | None:
        last = self._last()
        return last if last is not None and last.process.alive() else None

    def _launch(self, last: _Running | None) -> _Running:
        java = find_java(self._environ)
        jars = kafka_jars(java, self._environ)
        port, controller_port = free_ports(*((last.port, last.controller_port) if last else (0, 0)))
        data, scratch = self._folder / "data", self._folder / "tmp"
        scratch.mkdir(exist_ok=True)
        write_atomically(
            self._properties,
            _PROPERTIES.format(port=port, controller_port=controller_port, data=data),
        )
        command = [
            *(str(java), *_JVM_OPTIONS, f"-Djava.io.tmpdir={scratch}"),
            *("-cp", class_path(jars)),
        ]
        if not (data / "meta.properties").exists():
            self._format(command)
        pid = self._spawn([*command, "kafka.Kafka", str(self._properties)])
        process = ProcessIdentity.of(pid)
        if process is None:
            raise InfrastructureError(f"the broker ended immediately:\n{self._last_lines()}")
        running = _Running(process=process, port=port, controller_port=controller_port)
        write_atomically(self._state, running.model_dump_json())
        return running

    def _format(self, java_command: list[str]) -> None:
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # One id in 64 begins with a dash: as a separate word it would be taken for an option.
        named = f"--cluster-id={cluster_id}"
        arguments = ["format", "--standalone", named, "-c", str(self._properties)]
        ran = subprocess.run(
            [*java_command, "kafka.tools.StorageTool", *arguments],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
            env=inherited(self._environ, JAVA_PROCESS),
        )
        if ran.returncode != 0:
            said = (ran.stdout + ran.stderr)[-2000:]
            raise InfrastructureError(f"Kafka could not format {self._folder / 'data'}:\n{said}")

    def _spawn(self, command: list[str]) -> int:
        """In a session of its own, so that neither the starter's end nor Ctrl-C affects it."""
        ours = {JOB_ID_NAME: BROKER_ID, ENVIRONMENT_NAME: str(self._home.root.absolute())}
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        return os.posix_spawn(
            command[0],
            command,
            {**inherited(self._environ, JAVA_PROCESS), **ours},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self.log), flags, PRIVATE),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )

    def _wait_until_serving(self, running: _Running, timeout_seconds: float) -> None:
        address = ("127.0.0.1", running.port)
        deadline = time.monotonic() + timeout_seconds
        while not _listens(address):
            if _ended(running.process, 0):
                raise InfrastructureError(
                    f"the Kafka broker ended while it started:\n{self._last_lines()}"
                )
            if time.monotonic() > deadline:
                raise InfrastructureError(
                    f"the Kafka broker is not ready after {timeout_seconds:g} s: see {self.log}"
                )
            time.sleep(_POLL_SECONDS)
        with Cluster(f"127.0.0.1:{running.port}", timeout_seconds) as cluster:
            cluster.ping()

    def _last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        told = [line for line in lines if not line.startswith("\tat ")]  # no Java stacks
        return "\n".join(told[-_LOG_LINES:])


def _listens(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=1.0):
            return True
    except OSError:
        return False


def _ended(process: ProcessIdentity, timeout_seconds: float) -> bool:
    """Whether the process ended before the deadline. If it is our own child, it is reaped."""
    deadline = time.monotonic() + timeout_seconds
    while process.alive():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    with contextlib.suppress(ChildProcessError):  # its parent is another process, which reaps it
        os.waitpid(process.pid, os.WNOHANG)
    return True
