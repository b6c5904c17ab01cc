"""SIGKILL of every role while a window of 300,000 rows trains: the model's row sums stay exact.

The whole matrix, with kills of several processes and with Kafka, is tests/chaos.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.kill_cases import KillCase
from support.projects import Project, Topic, ads_pipeline, ads_project

ROWS = 300_000
KAFKA_ROWS = 60_000
KAFKA_CHECKPOINT_STEPS = 10


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return ads_project(tmp_path_factory.mktemp("kills"), days=1, rows=ROWS)


@pytest.fixture
def case(data: Project, tmp_path: Path) -> KillCase:
    """The same data with a home of its own."""
    return KillCase(Project(data.root, ads_pipeline(), home_folder=tmp_path / "home"), ROWS)


def test_trainer(case: KillCase) -> None:
    case.trainer()


@pytest.mark.parametrize("role", ["data", "driver"])
def test_the_trainer_outlives_the_data_side(case: KillCase, role: str) -> None:
    case.data_side(role)


def test_supervisor(case: KillCase) -> None:
    case.supervisor()


def test_everything_and_the_same_command_again(case: KillCase) -> None:
    case.everything()


@pytest.mark.kafka
@pytest.mark.parametrize("role", ["trainer", "data"])
def test_with_the_stream_on_kafka(
    kafka_bootstrap: str, new_topic: Callable[..., str], tmp_path: Path, role: str
) -> None:
    pipeline = ads_pipeline(checkpoint={"every_steps": KAFKA_CHECKPOINT_STEPS})
    topic = Topic(kafka_bootstrap, new_topic(2))
    project = ads_project(tmp_path, rows=KAFKA_ROWS, pipeline=pipeline, topic=topic)
    case = KillCase(project, KAFKA_ROWS, KAFKA_CHECKPOINT_STEPS)
    if role == "trainer":
        case.trainer()
    else:
        case.data_side(role)
