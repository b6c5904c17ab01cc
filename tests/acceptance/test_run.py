"""`forebay run` with the counting model: rows, chain, reprocessing, ledger, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.airflow_data import CLICKS, HISTORY
from support.file_watch import watched
from support.jobs import report_job
from support.kill_cases import expected, expected_of
from support.kills import no_process_left
from support.projects import DAY, FIRST_DAY, Project, ads_project, write_history
from support.truth_rows import served_of

from forebay.home.paths import Home

pytestmark = pytest.mark.usefixtures("jobs_here")

DAYS = 4
ROWS = 3_000
WINDOWS = [f"2026-03-0{day}" for day in range(1, DAYS + 1)]
LAST = WINDOWS[-1]
Trained = tuple[Project, dict[str, Any]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Four windows trained once; tests below add to it in their order."""
    project = ads_project(tmp_path_factory.mktemp("run"), days=DAYS, rows=ROWS)
    return project, project.run("2026-03-01", LAST)


def test_every_window_counts_what_an_independent_reader_counts(trained: Trained) -> None:
    project, summary = trained
    assert [window["window"] for window in summary["windows"]] == WINDOWS
    for day, window in enumerate(summary["windows"]):
        assert window["generation"] == 1
        assert window["resumed_from_step"] == 0
        assert window["reread_rows"] == 0
        for name, sums in expected(project, day).items():
            source = window["sources"][name]
            for rows in ("planned_rows", "served_rows", "trained_rows"):
                assert source[rows] == sums["rows"]
            assert source["dead_letter_rows"] == 0
    assert summary["seen"] == expected_of(project, DAYS)
    assert no_process_left(project)
    sources = summary["windows"][0]["sources"]
    assert sources["history"]["data_from"].startswith("2026-02-28T00:00:00")
    assert sources["history"]["data_to"].startswith("2026-03-01T00:00:00")
    assert sources["clicks"]["data_from"].startswith("2026-03-01T00:00:00")


def test_a_second_run_trains_nothing_twice(trained: Trained) -> None:
    project, first = trained
    again = project.run("2026-03-01", LAST)
    assert (again["trained_windows"], again["reused_windows"]) == ([], WINDOWS)
    assert again["seen"] == first["seen"]
    assert again["storage_calls"] == 0


def test_reprocessing_a_middle_window_starts_from_the_window_before(trained: Trained) -> None:
    project, _ = trained
    served = served_of(project.home, "ads")
    summary = project.run("2026-03-02", "2026-03-02", "--reprocess")
    window = summary["windows"][0]
    assert window["generation"] == 2
    assert window["parent"] == {"window": "2026-03-01", "generation": 1}
    assert summary["seen"] == expected_of(project, 2)
    assert summary["stale_windows"] == ["2026-03-03", "2026-03-04"]
    assert served_of(project.home, "ads") == served
    listed = json.loads(project.forebay("models", "ls", "ads", "--output", "json").stdout)
    states = {(row["window"], row["generation"]): row["state"] for row in listed}
    assert states["2026-03-02", 1] == "replaced"
    assert states["2026-03-02", 2] == "current"
    assert states["2026-03-03", 1] == "stale (built on generation 1 of 2026-03-02)"
    assert states["2026-03-04", 1].endswith("serves")


def test_a_removed_ledger_entry_makes_exactly_that_window_run_again(trained: Trained) -> None:
    project, _ = trained
    project.forebay("forget", "ads", "2026-03-03")
    summary = project.run("2026-03-01", LAST)
    assert summary["trained_windows"] == ["2026-03-03"]
    third = summary["windows"][2]
    assert third["generation"] == 2
    assert third["parent"] == {"window": "2026-03-02", "generation": 2}
    assert summary["windows"][3]["generation"] == 1


def test_after_a_reprocess_that_was_cut_off_and_then_trained_another_one_reads_again(
    tmp_path: Path,
) -> None:
    project = ads_project(tmp_path, days=1, rows=200)
    project.run("2026-03-01", "2026-03-01")
    project.run("2026-03-01", "2026-03-01", "--reprocess")
    report_job(Home(project.home), "ads.main.2026-03-01..2026-03-01.reprocess", 1, "cancelled")
    write_history(project.files, FIRST_DAY - DAY, 300)
    summary = project.run("2026-03-01", "2026-03-01", "--reprocess")
    assert summary["windows"][0]["generation"] == 3
    assert summary["seen"]["history"]["rows"] == 300


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nobody", "--from", "2026-03-01", "--to", "2026-03-01"), "nobody"),
        (("ads", "--from", "2026-02-01", "--to", "2026-03-01"), "2026-03-01"),
        (("ads", "--reprocess"), "--reprocess trains again what you name: write --from"),
        (("ads", "--from", "March", "--to", "2026-03-01"), "March"),
        (("ads", "--from", "2026-03-02", "--to", "2026-03-01"), "before the first"),
        (("ads", "--from", "2026-03-01", "--to", "2026-03-01", "--line", "a b"), "a name is"),
    ],
)
def test_a_wrong_command_is_one_line_and_exit_1(
    trained: Trained, arguments: tuple[str, ...], text: str
) -> None:
    project, _ = trained
    done = project.forebay("run", *arguments, check=False)
    assert done.returncode == 1
    assert text in done.stderr
    assert "Traceback" not in done.stderr


# Only `--reprocess` reads the data again: reads are counted by the kernel ------------------------


def files_of(project: Project, day: int) -> set[str]:
    start = FIRST_DAY + day * DAY
    found = (each.files(project.root, start, start + DAY) for each in (HISTORY, CLICKS))
    return set().union(*found)


def test_every_file_is_read_once_and_those_of_a_window_when_it_is_reprocessed(
    tmp_path: Path,
) -> None:
    project = ads_project(tmp_path, days=3, rows=ROWS)
    with watched(project.root / "data") as reads:
        trained = project.run(WINDOWS[0], WINDOWS[2])
    everything = set().union(*(files_of(project, day) for day in range(3)))
    assert len(everything) == 3 * (2 + 48)
    assert set(reads.opened) == everything
    assert {path for path in everything if path.endswith(".parquet")} <= set(reads.read)

    with watched(project.root / "data") as reads:
        project.run(WINDOWS[0], WINDOWS[2])
    assert {*reads.opened, *reads.read} == set(), "folders are listed, to tell of changes"

    key = WINDOWS[1]
    with watched(project.root / "data") as reads:
        summary = project.run(key, key, "--reprocess")
    mine = files_of(project, 1)
    assert set(reads.opened) >= mine
    assert all(reads.read[path] > 0 for path in mine if path.endswith(".parquet"))
    # Planning may look at any footer; rows are read of this window's files alone.
    others = {path for path in reads.opened if path.endswith(".arrow")} - mine
    partitions = [path.split("/")[-2] for path in others]
    assert len(partitions) == len(set(partitions)), "one segment of each, for its checksum"
    assert summary["windows"][0]["generation"] == 2
    rows = [window["sources"] for window in (summary["windows"][0], trained["windows"][1])]
    assert rows[0] == rows[1]
