"""Only `--reprocess` reads the data again: reads are counted by the kernel."""

from __future__ import annotations

from typing import Any

import pytest
from support.airflow_data import CLICKS, HISTORY
from support.file_watch import Reads, watched
from support.jobs_here import jobs_in_this_process
from support.projects import DAY, FIRST_DAY, Project, ads_project

pytestmark = pytest.mark.usefixtures("jobs_here")

DAYS = 3
ROWS = 3_000
LAST = "2026-03-03"
MIDDLE = 1  # the window that is reprocessed


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Reads, dict[str, Any]]:
    project = ads_project(tmp_path_factory.mktemp("reads"), days=DAYS, rows=ROWS)
    with jobs_in_this_process(), watched(project.root / "data") as reads:
        summary = project.run("2026-03-01", LAST)
    return project, reads, summary


def files_of(project: Project, day: int) -> set[str]:
    start = FIRST_DAY + day * DAY
    found = (each.files(project.root, start, start + DAY) for each in (HISTORY, CLICKS))
    return set().union(*found)


def test_the_first_run_opens_every_file(first: tuple[Project, Reads, dict[str, Any]]) -> None:
    project, reads, _ = first
    everything = set().union(*(files_of(project, day) for day in range(DAYS)))
    assert len(everything) == DAYS * (2 + 48)
    assert set(reads.opened) == everything
    assert {path for path in everything if path.endswith(".parquet")} <= set(reads.read)


def test_a_plain_second_run_opens_nothing(first: tuple[Project, Reads, dict[str, Any]]) -> None:
    project, _, _ = first
    with watched(project.root / "data") as reads:
        project.run("2026-03-01", LAST)
    seen = {*reads.opened, *reads.read}
    assert seen == set(), "folders are listed, to tell of changes"


def test_reprocessing_a_window_reads_its_files_again(
    first: tuple[Project, Reads, dict[str, Any]],
) -> None:
    project, _, trained = first
    key = trained["windows"][MIDDLE]["window"]
    with watched(project.root / "data") as reads:
        summary = project.run(key, key, "--reprocess")
    mine = files_of(project, MIDDLE)
    assert set(reads.opened) >= mine
    parquet = {path for path in mine if path.endswith(".parquet")}
    for path in parquet:
        assert reads.read[path] > 0
    # Planning may look at any footer; rows are read of this window's files alone.
    others = {path for path in reads.opened if path.endswith(".arrow")} - mine
    partitions = [path.split("/")[-2] for path in others]
    assert len(partitions) == len(set(partitions)), "one segment of each, for its checksum"
    assert summary["windows"][0]["generation"] == 2
    rows = [window["sources"] for window in (summary["windows"][0], trained["windows"][MIDDLE])]
    assert rows[0] == rows[1]
