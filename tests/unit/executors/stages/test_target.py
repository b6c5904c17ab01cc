"""What a stage works on: where its state is, what it trains, and its job's request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.jobs import ToldJob
from support.model_lines import record_link
from support.projects import ads_pipeline, declared_project
from support.stages import Stages, noon, replanned, stages, table

from forebay.config.load import load_project
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.stages.lost_jobs import end_trained_jobs
from forebay.executors.stages.target import LineTarget
from forebay.home.paths import Home

KEY = "2026-03-01"


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Stages]:
    with stages(tmp_path) as each:
        MEMORY["a"] = table([noon(0)])
        each.source(0)
        each.sink(0)
        yield each


def test_a_line_trains_the_rivals_that_it_was_begun_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    made = declared_project(tmp_path, ads_pipeline("towers"))
    made.pipeline["train"]["compare"] = "auto"
    made.write_pipeline()

    def target(line: str = "main") -> LineTarget:
        return LineTarget.load(tmp_path / "config", "ads", line)

    new = ["mixture", "stream+fnw", "batch", "mixed"]
    assert target().pipeline.train.paradigms == new
    learnt = {"mixture": 1, "stream+head": 1, "sale:mixture": 1, "stream+head/masked": 1}
    record_link(target().chain, KEY, {"history": 1}, learnt={"history": learnt})
    found = target()
    assert found.pipeline.train.paradigms == ["mixture", "stream+head"]
    assert found.project.pipelines["ads"] == found.pipeline
    request = found.job_request("j1", [])
    assert request.pipeline_spec().train.paradigms == ["mixture", "stream+head"]
    assert target("trial").pipeline.train.paradigms == new, "each line has its own"
    made.pipeline["train"] = {"compare": ["stream"]}
    made.write_pipeline()
    assert target().pipeline.train.paradigms == ["mixture", "stream"], "only `auto` is kept"


def test_a_window_is_trained_by_the_line_that_linked_it(found: Stages) -> None:
    target, ledger = found.target(0), found.ledger
    assert replanned(ledger, KEY) == 2
    assert not target.is_trained(KEY, 1)
    assert ledger.trained(KEY) is None
    record_link(ModelChain(found.home, "ads", "trial"), KEY, {"a": 1})
    assert not target.is_trained(KEY, 1), "another line has"
    assert ledger.trained(KEY) is None
    assert Ledger(found.home, "ads", "trial").trained(KEY) == 1
    record_link(target.chain, KEY, {"a": 1}, generation=2)
    assert [target.is_trained(KEY, number) for number in (1, 2, 3)] == [False, True, False]
    assert ledger.trained(KEY) == 2


def test_a_job_gets_the_plans_in_their_order(found: Stages) -> None:
    plan = found.ledger.plan(KEY, 1)
    warm = plan.model_copy(update={"window": f"2026-02-20_{KEY}", "generation": 3})
    request = found.target(0).job_request("j1", [warm, plan], publishes=False)
    assert [(each.key, each.generation, each.warm_start) for each in request.windows] == [
        (f"2026-02-20_{KEY}", 3, True),
        (KEY, 1, False),
    ]
    assert (request.job_id, request.line, request.publishes) == ("j1", "main", False)
    assert list(request.sources) == ["a"]


@pytest.fixture
def target(tmp_path: Path) -> LineTarget:
    declared_project(tmp_path)
    project = load_project(tmp_path / "config")
    return LineTarget(project, project.pipeline("ads"), Home(tmp_path / "home"), "main")


@pytest.fixture
def job(target: LineTarget) -> ToldJob:
    made = ToldJob(target.home)
    made.tell("running", ended_at=None, pids={"supervisor": 1})
    return made


def stored(job: ToldJob) -> Any:
    return job.row.status


def test_only_a_lost_job_whose_windows_are_trained_is_ended(
    target: LineTarget, job: ToldJob
) -> None:
    end_trained_jobs(target)
    assert stored(job).state == "running", "it has a window to train: it is lost, and can go on"
    job.link(10)
    end_trained_jobs(LineTarget(target.project, target.pipeline, target.home, "trial"))
    assert stored(job).state == "running", "of another line"
    with job.supervised():
        end_trained_jobs(target)
    assert stored(job).state == "running", "it lives"
    end_trained_jobs(target)
    assert (stored(job).state, stored(job).pids) == ("succeeded", {})
    assert stored(job).ended_at is not None
    job.tell("cancelled", cancelled_by=1)
    end_trained_jobs(target)
    assert stored(job).state == "cancelled", "as it ended"
