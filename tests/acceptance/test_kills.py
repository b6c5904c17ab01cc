"""SIGKILL while a window of 200,000 rows trains: the model's row sums stay exact.

The whole matrix, of each role, of several processes and with Kafka, is tests/chaos.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kill_cases import WINDOW, KillCase
from support.kills import kill_tree, running, summary_of, wait_for_rows
from support.projects import Project, ads_pipeline, ads_project

ROWS = 200_000
FEW_ROWS = 60_000
FEW_STEPS = 10


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return ads_project(tmp_path_factory.mktemp("kills"), days=1, rows=ROWS)


@pytest.fixture
def case(data: Project, tmp_path: Path) -> KillCase:
    return KillCase(Project(data.root, ads_pipeline(), home_folder=tmp_path / "home"), ROWS)


@pytest.mark.guarantee(
    "the trainer dies",
    "nothing; read again: at most one checkpoint interval (`resumed_from_step`, `reread_rows` "
    "in the summary)",
)
def test_trainer(case: KillCase) -> None:
    case.trainer()


@pytest.mark.guarantee(
    "the driver dies",
    "nothing; the trainer's process and step continue; read again: frames in flight: at most "
    "credits times minibatch",
)
def test_the_trainer_outlives_the_driver(case: KillCase) -> None:
    case.data_side("driver")


@pytest.mark.guarantee("everything dies at once", "nothing; read again: as for the trainer")
def test_everything_and_the_same_command_again(case: KillCase) -> None:
    case.everything()


@pytest.mark.guarantee(
    "the declaration of the model is changed while its first window is interrupted",
    "its checkpoint is dropped; the window starts again; read again: the window so far",
)
def test_a_changed_declaration_begins_the_first_window_anew(tmp_path: Path) -> None:
    pipeline = ads_pipeline(checkpoint={"every_steps": FEW_STEPS})
    project = ads_project(tmp_path, rows=FEW_ROWS, pipeline=pipeline)
    case = KillCase(project, FEW_ROWS, FEW_STEPS)
    with running(project, *case.arguments) as run:
        wait_for_rows(project, WINDOW, FEW_ROWS, run)
        kill_tree(project, run)
    pipeline["dataset"]["features"]["price"] = {"encode": "numeric"}
    project.write_pipeline()
    project.forebay(*case.arguments)
    summary = summary_of(case.summary)
    assert summary["windows"][0]["resumed_from_step"] == 0
    case.assert_exact(summary)
