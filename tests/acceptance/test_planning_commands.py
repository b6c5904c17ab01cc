"""plan, preview, sources, why and forget: their text, their JSON, their exit codes."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.jobs import request, store_job
from support.links import link
from support.model_lines import keep_checkpoint, mark_trained, record
from support.projects import (
    FIRST_DAY,
    Project,
    ads_pipeline,
    ads_project,
    history_source,
    rows_of_day,
)

from forebay.config.load import load_project
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.executors.job.folder import JobFolder
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.home.paths import Home
from forebay.system.files.locks import FileLock

pytestmark = pytest.mark.usefixtures("jobs_here")

ROWS = 500


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ads_project(tmp_path_factory.mktemp("written"), days=3, rows=ROWS).root


@pytest.fixture
def project(written: Path, tmp_path: Path) -> Project:
    return Project(Path(shutil.copytree(written, tmp_path / "project")))


class Caller:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.errors = ""

    def text(self, *arguments: str, code: int = 0) -> str:
        done = self.project.forebay(*arguments, check=False)
        self.errors = done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.text(*arguments, "--output", "json"))


@pytest.fixture
def forebay(project: Project) -> Caller:
    return Caller(project)


PLAN = ("plan", "ads", "--from", "2026-03-01", "--to", "2026-03-03")


def test_plan_equals_a_count_by_duckdb(project: Project, forebay: Caller) -> None:
    rows = forebay.json(*PLAN)
    keys = ["window", "source", "generation", "data_from", "data_to", "tasks", "files", "rows"]
    assert [list(row) for row in rows] == [[*keys, "offsets"]] * 6
    for row in rows:
        if row["source"] != "history":
            assert sum(end - first for first, end in row["offsets"].values()) == row["rows"]
            continue
        assert row["offsets"] == {}
        [[count, files]] = duckdb.execute(
            "SELECT count(*), count(DISTINCT filename) FROM read_parquet(?, filename = true) "
            'WHERE "at" >= ?::TIMESTAMPTZ AND "at" < ?::TIMESTAMPTZ',
            [f"{project.files}/**/*.parquet", row["data_from"], row["data_to"]],
        ).fetchall()
        assert (row["rows"], row["files"]) == (count, files)
        assert row["data_to"] == f"{row['window']}T00:00:00Z", "offset 24h"
    assert [row["rows"] for row in rows if row["source"] == "clicks"] == [ROWS] * 3
    assert forebay.json(*PLAN) == rows
    text = forebay.text(*PLAN)
    assert text.splitlines()[0].split() == [*keys, "offsets", "reason"]
    assert "3 windows, 3 of them planned before" in text
    clicks = [row for row in rows if row["source"] == "clicks"]
    lines = [line for line in text.splitlines() if " clicks " in line]
    for row, line in zip(clicks, lines, strict=True):
        assert line.endswith(" ".join(f"{p}:{a}-{b}" for p, (a, b) in row["offsets"].items()))
    for row, following in itertools.pairwise(clicks):
        ends = {name: end for name, (_, end) in row["offsets"].items()}
        assert {name: first for name, (first, _) in following["offsets"].items()} == ends


def test_plan_prints_the_first_of_many_partitions(project: Project, forebay: Caller) -> None:
    rows = rows_of_day(FIRST_DAY, 1, seed=1)
    for partition in range(2, 20):
        LogWriter(project.log, partition).append(rows, FIRST_DAY)
    forebay.text(*PLAN)
    line = next(each for each in forebay.text(*PLAN).splitlines() if " clicks " in each)
    assert line.count(":") == 8
    assert line.endswith("and 12 more (--output json)")


def test_plan_of_what_is_not_there(project: Project, forebay: Caller) -> None:
    forebay.text("plan", "ads", "--from", "2199-01-01", "--to", "2199-01-01", code=2)
    assert "2199-01-01 is not over" in forebay.errors
    forebay.text("plan", "ads", "--from", "2026-02-01", "--to", "2026-02-01", code=1)
    project.write_source("history", history_source(options={"path": "data/histroy"}))
    forebay.text(*PLAN, code=3)
    assert "data/histroy does not exist" in forebay.errors
    assert forebay.text("preview", "history", code=2)
    assert "does not exist" in forebay.errors


def test_plan_tells_when_trained_data_changed(project: Project, forebay: Caller) -> None:
    forebay.text(*PLAN)
    mark_trained(Ledger(Home(project.home), "ads"), "2026-03-02", 1)
    changed = next(iter(sorted((project.files / "date=2026-03-01").glob("*.parquet"))))
    changed.unlink()
    assert forebay.json(*PLAN)[2]["generation"] == 1
    told = "2026-03-02: history: its files have changed since it was planned: 1 removed"
    assert told in forebay.errors
    assert "--from 2026-03-02 --to 2026-03-02 --reprocess" in forebay.errors


def test_sources(project: Project, forebay: Caller) -> None:
    found = forebay.json("sources")
    declared = {each["source"]: (each["kind"], each["pipelines"]) for each in found["sources"]}
    assert declared == {"history": ("parquet", ["ads"]), "clicks": ("log", ["ads"])}
    kinds = {each["kind"]: each for each in found["kinds"]}
    assert {"parquet", "log", "iceberg", "kafka", "memory"} <= set(kinds)
    assert kinds["kafka"]["cut_by"] == "publication time"
    assert "window_path" in kinds["parquet"]["options"]
    text = forebay.text("sources")
    assert "history" in text
    assert "publication time" in text


@pytest.mark.parametrize("source", ["history", "clicks"])
def test_preview(project: Project, forebay: Caller, source: str) -> None:
    found = forebay.json("preview", source, "--rows", "3")
    assert found["source"] == source
    assert found["problems"] == []
    assert len(found["rows"]) == 3
    assert set(found["rows"][0]) == {"event", "at", "user", "price", "mobile", "tags", "clicked"}
    assert found["newest"] > "2026-02-28"
    assert found["partitions"]
    assert {"column": "user", "declared": "string", "stored": "string"} in found["columns"]
    text = forebay.text("preview", source)
    assert "newest" in text
    assert "partitions" in text
    assert forebay.text("preview", f"{source}@yesterday") == text, "as `why` names what two read"


def test_preview_names_a_wrong_column_and_a_wrong_source(project: Project, forebay: Caller) -> None:
    columns = {**history_source()["columns"], "pirce": "float"}
    project.write_source("history", history_source(columns=columns))
    assert "did you mean 'price'" in forebay.text("preview", "history", code=1)
    forebay.text("preview", "histroy", code=1)
    assert "history" in forebay.errors


def test_why_names_the_folder_that_it_read(project: Project, forebay: Caller) -> None:
    assert forebay.text("why", "ads", "2026-03-02").startswith("window 2026-03-02: not planned\n")
    shutil.move(project.root / "config", project.root / "our config")
    found = forebay.json("why", "ads", "2026-03-02", "--config", "our config")
    command = "forebay run ads --from 2026-03-02 --to 2026-03-02 --config 'our config'"
    assert (found["state"], found["command"]) == ("not planned", command)


def test_why_planning_failed(project: Project, forebay: Caller) -> None:
    bad = project.files / "date=2026-03-01" / "bad.parquet"
    bad.write_bytes(b"nothing")
    forebay.text(*PLAN, code=3)
    found = forebay.json("why", "ads", "2026-03-02")
    assert found["state"] == "not planned"
    assert "bad.parquet cannot be read" in found["reason"]


def trained(project: Project, window: str, generation: int, parent: tuple[str, int] | None) -> None:
    chain = ModelChain(Home(project.home), "ads")
    declared = load_project(project.root / "config")
    fingerprint = model_fingerprint_of(declared.pipeline("ads"), declared.sources)
    made = link(window, generation=generation, parent=parent, model_fingerprint=fingerprint)
    record(chain, made)
    keep_checkpoint(chain, made)


def test_models_ls_calls_an_older_generation_replaced_and_not_stale(
    project: Project, forebay: Caller
) -> None:
    forebay.text(*PLAN)
    trained(project, "2026-03-01", 1, None)
    trained(project, "2026-03-02", 1, ("2026-03-01", 1))
    trained(project, "2026-03-02", 2, ("2026-03-01", 1))
    trained(project, "2026-03-01", 2, None)
    states = [row["state"] for row in forebay.json("models", "ls", "ads")]
    stale = "stale (built on generation 1 of 2026-03-01)"
    assert states == ["replaced", "current", "replaced", stale]


@pytest.mark.parametrize("command", [("why", "ads", "2026-03-01"), ("models", "ls", "ads")])
def test_a_line_is_a_name(forebay: Caller, command: tuple[str, ...]) -> None:
    forebay.text(*command, "--line", "../main", code=1)
    assert "'--line': '../main': a name is" in forebay.errors


def test_forget_refuses_a_window_that_a_job_works_on(project: Project, forebay: Caller) -> None:
    forebay.text(*PLAN)
    home = Home(project.home)
    store_job(request(home, "ads-1", {"2026-03-02": 1}), "submitted")
    lock = FileLock(JobFolder(home.job("ads-1")).supervisor_lock)
    assert lock.acquire(1.0)  # its supervisor lives
    assert forebay.json("why", "ads", "2026-03-02")["state"] == "running"
    forebay.text("forget", "ads", "2026-03-02", code=4)
    assert "ads-1 is working on window 2026-03-02" in forebay.errors
    lock.release()


def test_forget(project: Project, forebay: Caller) -> None:
    forebay.text(*PLAN)
    assert "is forgotten" in forebay.text("forget", "ads", "2026-03-02")
    assert Ledger(Home(project.home), "ads").windows() == ["2026-03-01", "2026-03-03"]
    assert forebay.json("forget", "ads", "2026-03-03") == {
        "pipeline": "ads",
        "line": "main",
        "forgotten": "2026-03-03",
    }
    forebay.text("forget", "ads", "2026-03-02", code=1)
    assert "its last windows: 2026-03-01" in forebay.errors
    forebay.text(*PLAN)
    assert Ledger(Home(project.home), "ads").windows()[1] == "2026-03-02"


def test_forget_concerns_one_line(project: Project, forebay: Caller) -> None:
    key = "2026-03-01"
    forebay.text(*PLAN)
    home = Home(project.home)
    for line in ("main", "b"):
        record(ModelChain(home, "ads", line), link(key))

    def states(line: str) -> list[str]:
        return [row["state"] for row in forebay.json("models", "ls", "ads", "--line", line)]

    def does(line: str) -> str:
        spans = ("--from", key, "--to", key, "--line", line)
        (window,) = forebay.json("explain", "ads", *spans)["windows"]
        return str(window["does"])

    assert "is forgotten on line 'b'" in forebay.text("forget", "ads", key, "--line", "b")
    assert states("main") == ["current"]
    assert states("b") == ["forgotten (the next run trains it again)"]
    assert (does("main"), does("b")) == ("skip", "train again")
    assert forebay.json("why", "ads", key)["state"] == "trained"
    why_b = forebay.json("why", "ads", key, "--line", "b")
    assert why_b["reason"].startswith("forgotten after generation 1 was trained; ")
    forebay.text("forget", "ads", key, "--line", "b", code=1)
    assert "line 'b' has no plan for '2026-03-01'" in forebay.errors
    forebay.text("forget", "ads", "--all", "--yes", "--line", "bb", code=1)
    assert "has no line 'bb' (did you mean b?)" in forebay.errors
    for line, generation in (("main", 1), ("b", 2)):
        rows = forebay.json(*PLAN, "--line", line)
        assert {row["generation"] for row in rows if row["window"] == key} == {generation}
    assert (does("main"), does("b")) == ("skip", "train again")


def test_without_dates_what_is_due_is_planned(project: Project, forebay: Caller) -> None:
    project.pipeline = ads_pipeline()
    project.pipeline["dataset"]["end"] = "2026-03-04"
    project.write_pipeline()
    days = {"2026-03-01", "2026-03-02", "2026-03-03"}
    assert {row["window"] for row in forebay.json("plan", "ads")} == days
    mark_trained(Ledger(Home(project.home), "ads"), "2026-03-01", 1)
    assert {row["window"] for row in forebay.json("plan", "ads")} == {"2026-03-02", "2026-03-03"}
    mark_trained(Ledger(Home(project.home), "ads"), "2026-03-02", 1)
    forebay.text("forget", "ads", "2026-03-01")
    assert {row["window"] for row in forebay.json("plan", "ads")} == days, "what was forgotten too"
    assert forebay.text("plan", "ads", "--to", "2026-03-02", code=1) == ""
    assert "--to needs --from" in forebay.errors
