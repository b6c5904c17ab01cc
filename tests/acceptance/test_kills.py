"""SIGKILL while a window of 200,000 rows trains: the model's row sums stay exact.

The whole matrix, of each role, of several processes and with Kafka, is tests/chaos.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.kill_cases import WINDOW, KillCase
from support.kills import kill_tree, running, summary_of, wait_for_rows
from support.projects import Project, ads_pipeline, ads_project, history_source, with_column
from support.stuck_code import stick

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


@pytest.fixture
def dead_rows(tmp_path: Path) -> Project:
    """4 MiB of dead letters in one chunk, and others between rows that are trained on."""
    pipeline = ads_pipeline(checkpoint={"every_steps": FEW_STEPS})
    del pipeline["dataset"]["streams"]["clicks"]
    project = ads_project(tmp_path, rows=FEW_ROWS, pipeline=pipeline)
    project.write_source("history", history_source(label_null="dead_letter"))
    for path in sorted(project.files.rglob("*.parquet")):
        table = pq.ParquetFile(path).read()
        rows = range(len(table))
        many = 6_000 if path.stem == "part-0" else 0
        users = pa.array([f"user {row}".ljust(400, "x") for row in rows])
        labels = pa.array([None if row < many or row % 100 == 0 else 1 for row in rows], pa.int64())
        table = with_column(with_column(table, "user", users), "clicked", labels)
        pq.write_table(table, path, row_group_size=20_000)
    return project


BEFORE_ROWS = ("forebay.executors.data_executor.epoch:FrameHead", 3)
AT_SEAL = ("forebay.executors.window_files.dead_letters:LetterFile.sealed", 3)


@pytest.mark.parametrize(
    ("role", "place"),
    [
        pytest.param("", ("", 0), id="nobody"),
        pytest.param("data_executor", BEFORE_ROWS, id="between letters and rows"),
        pytest.param("trainer", AT_SEAL, id="between letters and their seal"),
    ],
)
def test_each_dead_row_has_one_letter_whoever_dies(
    dead_rows: Project, tmp_path: Path, role: str, place: tuple[str, int]
) -> None:
    if role:
        stick(dead_rows, tmp_path / "dying", (role, *place), dies=True)
    summary = dead_rows.run(WINDOW, WINDOW)
    died = {name: count for name, count in summary["restarts"].items() if count}
    assert died == ({role.removesuffix("_executor"): 1} if role else {})
    shown = dead_rows.forebay("dead", "show", "ads", "--rows-max", "99999", "--output", "json")
    places = [(Path(each["file"]).name, each["row"]) for each in json.loads(shown.stdout)]
    counted = duckdb.sql(
        "select parse_filename(filename), file_row_number from read_parquet("
        f"'{dead_rows.files}/**/*.parquet', filename = true, file_row_number = true) "
        "where clicked is null"
    ).fetchall()
    assert sorted(places) == sorted(counted)
    assert len(shown.stdout) > 3 << 20
