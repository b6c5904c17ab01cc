"""Each role dies by SIGKILL, on a log and on Kafka, and several at once; rows stay exact.

One window with 300,000 rows of each source, a checkpoint every 50 steps, kills between 30% and
70% of the rows.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kill_cases import KillCase, settles_at_the_seal
from support.kills import is_alive, log_of, pid_of, signal_role
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    Topic,
    ads_pipeline,
    ads_project,
    declared_project,
    rows_of_day,
    write_history,
)
from support.record_files import compressed, json_rows
from support.there import eventually

from forebay.datatasks.sources.kafka.producer import create_topic
from forebay.embedded.kafka.broker import BOOTSTRAP_NAME, Broker
from forebay.home.paths import Home

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]
ROWS = 300_000
STOPPED_SECONDS = 15.0
KINDS = ["log", pytest.param("kafka", marks=pytest.mark.kafka)]
# Where a restart has an optimiser and embeddings to restore, not only counts.
WITH_TOWERS = [*KINDS, "towers"]


@pytest.fixture(scope="module")
def on_log(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return ads_project(tmp_path_factory.mktemp("log"), rows=ROWS)


@pytest.fixture
def case(request: pytest.FixtureRequest, on_log: Project, tmp_path: Path) -> KillCase:
    """A home of its own on the log; with Kafka a topic of its own too, whose group is nobody's.

    All but "towers" count instead of learning.
    """
    kind = getattr(request, "param", "log")
    if kind == "log":
        return KillCase(Project(on_log.root, ads_pipeline(), home_folder=tmp_path / "home"), ROWS)
    if kind == "towers":
        return own_case(on_log, tmp_path, model="towers")
    if kind == "json":
        project = declared_project(tmp_path, clicks={"kind": "json"})
        write_history(project.files, FIRST_DAY - DAY, ROWS)
        path = project.log / f"date={FIRST_DAY:%Y-%m-%d}/all.json.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(compressed(json_rows(rows_of_day(FIRST_DAY, ROWS, 1)), path.suffix))
        return KillCase(project, ROWS)
    topic = Topic(
        request.getfixturevalue("kafka_bootstrap"), request.getfixturevalue("new_topic")(2)
    )
    return KillCase(ads_project(tmp_path, rows=ROWS, topic=topic), ROWS)


def own_case(
    on_log: Project, root: Path, executors: int = 1, model: str = "count", **job: Any
) -> KillCase:
    """The log's data under a pipeline with another model or other job settings."""
    (root / "data").symlink_to(on_log.root / "data")
    (root / "config").mkdir()
    (root / "config" / "sources").symlink_to(on_log.root / "config" / "sources")
    pipeline = ads_pipeline(model, roles={"data": {"count": executors}}, **job)
    project = Project(root, pipeline)
    project.write_pipeline()
    return KillCase(project, ROWS, executors=executors)


@pytest.mark.parametrize("case", WITH_TOWERS, indirect=True)
def test_the_trainer(case: KillCase) -> None:
    case.trainer()


@pytest.mark.guarantee(
    "a data executor dies", "nothing; read again: frames in flight: at most credits times minibatch"
)
@pytest.mark.parametrize("case", [*KINDS, "json"], indirect=True)
def test_a_data_executor(case: KillCase) -> None:
    case.data_side("data")


@pytest.mark.parametrize("case", WITH_TOWERS, indirect=True)
def test_the_driver(case: KillCase) -> None:
    case.data_side("driver")


@pytest.mark.guarantee(
    "the supervisor dies",
    "nothing; its job ends with it and `run` submits it again; read again: as for the trainer",
)
@pytest.mark.parametrize("case", KINDS, indirect=True)
def test_the_supervisor(case: KillCase) -> None:
    case.supervisor()


@pytest.mark.parametrize("case", WITH_TOWERS, indirect=True)
def test_everything_and_the_same_command_again(case: KillCase) -> None:
    case.everything()


@pytest.mark.guarantee(
    "several processes die at once, or one dies twice", "nothing; read again: the sum of theirs"
)
@pytest.mark.parametrize("case", KINDS, indirect=True)
def test_driver_and_trainer_at_once(case: KillCase) -> None:
    case.driver_and_trainer()


@pytest.mark.parametrize("case", KINDS, indirect=True)
def test_the_trainer_twice(case: KillCase) -> None:
    case.trainer(times=2)


def test_one_of_two_data_executors(on_log: Project, tmp_path: Path) -> None:
    own_case(on_log, tmp_path, executors=2).data_side("data")


@pytest.mark.guarantee(
    "a data executor sleeps past its lease",
    "nothing; what it served since then is refused; read again: frames in flight",
)
def test_a_data_executor_that_sleeps_past_its_lease(case: KillCase) -> None:
    """Nobody restarts it, for it lives; what it served under the lost lease counts no more."""
    before: dict[str, int] = {}

    def sleep() -> None:
        before.update(trainer=pid_of(case.project, "trainer-0"))
        before.update(data=signal_role(case.project, "data", signal.SIGSTOP))
        time.sleep(STOPPED_SECONDS)
        assert "data executor 0 is silent" in log_of(case.project, "driver-0")
        assert is_alive(before["data"])
        os.kill(before["data"], signal.SIGCONT)

    summary = case.run(sleep)
    assert summary["restarts"] == {"supervisor": 0, "driver": 0, "data": 0, "trainer": 0}
    assert log_of(case.project, "data-0").count("registered at driver incarnation") == 2
    case.assert_trainer_unbroken(summary, before["trainer"])
    case.assert_exact(summary)


def test_a_sleeper_wakes_while_another_reads_its_tasks(on_log: Project, tmp_path: Path) -> None:
    case = own_case(on_log, tmp_path, executors=2, failover={"heartbeat_timeout": "3s"})
    trainer: list[int] = []

    def sleep() -> None:
        trainer.append(pid_of(case.project, "trainer-0"))
        stopped = signal_role(case.project, "data-0", signal.SIGSTOP)
        silent = "data executor 0 is silent"
        eventually(lambda: silent in log_of(case.project, "driver-0"), STOPPED_SECONDS)
        os.kill(stopped, signal.SIGCONT)

    summary = case.run(sleep)
    assert summary["restarts"]["data"] == 0
    assert log_of(case.project, "data-0").count("registered at driver incarnation") == 2
    assert log_of(case.project, "data-1").count("registered at driver incarnation") == 1
    case.assert_trainer_unbroken(summary, trainer[0])
    case.assert_exact(summary)


@pytest.mark.kafka
@pytest.mark.parametrize("case", ["kafka"], indirect=True)
def test_committed_offsets_are_those_of_the_newest_seal(case: KillCase) -> None:
    """While the trainer is stopped nothing is sealed, so what is committed stands still too."""
    settled = []

    def stop_and_look() -> None:
        pid = signal_role(case.project, "trainer", signal.SIGSTOP)
        settled.append(settles_at_the_seal(case.project))
        case.assert_not_ahead_of_the_seal()
        os.kill(pid, signal.SIGCONT)

    # A stop may hit the moment between a seal and its report, but not every time.
    summary = case.run(stop_and_look, stop_and_look, stop_and_look)
    assert any(settled)
    case.assert_exact(summary)


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(Home(tmp_path / "broker"), {**os.environ, BOOTSTRAP_NAME: ""})
    broker.start()
    yield broker
    broker.stop()


@pytest.mark.guarantee(
    "the Kafka broker is away for less than a minute",
    "nothing; no process of Forebay ends; read again: what was being fetched",
)
@pytest.mark.kafka
@pytest.mark.usefixtures("closed_sockets")
def test_the_broker(own_broker: Broker, tmp_path: Path) -> None:
    """It comes back within the clients' patience: no process of ours ends."""
    status = own_broker.status()
    create_topic(status.bootstrap, "clicks", 2)
    topic = Topic(status.bootstrap, "clicks")
    case = KillCase(ads_project(tmp_path / "project", rows=ROWS, topic=topic), ROWS)

    def kill() -> None:
        assert status.pid is not None
        os.kill(status.pid, signal.SIGKILL)
        while own_broker.status().running:
            time.sleep(0.05)
        own_broker.start()

    summary = case.run(kill)
    assert summary["restarts"] == {"supervisor": 0, "driver": 0, "data": 0, "trainer": 0}
    case.assert_exact(summary)
