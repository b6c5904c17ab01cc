"""Windows trained one by one, each by a job of its own, as Airflow's stages do it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support import independent
from support.kill_cases import expected
from support.model_lines import replace_link
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    ads_pipeline,
    ads_project,
    history_source,
    write_history,
)
from support.there import there

from forebay.config.load import load_project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import RowsLostError
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.request import JobStatus
from forebay.executors.job.submit import submit
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.stages.evaluate import evaluate_window
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.results import EvaluateResult, PublishResult, SubmitResult
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.target import StageTarget
from forebay.executors.stages.turn import PreviousRun
from forebay.executors.window_files.steps import read_steps
from forebay.home.paths import Home
from forebay.home.store.open import store_of

FIRST, SECOND = "2026-03-01", "2026-03-02"
WARM_START = f"2026-02-28_{FIRST}"
ROWS = 3_000
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass
class Stages:
    """The functions behind `forebay stage`, for one project."""

    made: Project

    def __post_init__(self) -> None:
        self.project = load_project(self.made.root / "config")
        self.home = Home(self.made.home)
        self.ledger = Ledger(self.home, "ads")
        self.chain = ModelChain(self.home, "ads")

    @property
    def pipeline(self) -> PipelineSpec:
        return self.project.pipeline("ads")

    def plan(self, key: str) -> None:
        declared = (self.project.root, self.pipeline, self.project.sources)
        windows = [self.pipeline.dataset.grid.parse(key)]
        plan_windows(*declared, self.ledger, windows, warm_start=None, clock=lambda: NOW)

    def target(self, key: str) -> StageTarget:
        window = self.pipeline.dataset.grid.parse(key)
        return StageTarget(self.project, self.pipeline, self.home, "main", window)

    def submit(self, key: str, claim: str, *, again: bool = False) -> SubmitResult:
        return submit_window(
            self.target(key),
            claim=claim,
            again=again,
            previous=PreviousRun.NONE if key == FIRST else PreviousRun.DONE,
        )

    def train(self, key: str, claim: str, *, again: bool = False) -> JobStatus:
        found = self.submit(key, claim, again=again)
        assert found.state == "submitted", found
        self.handle = JobHandle(self.home, found.job_id, found.epoch)
        return self.handle.wait(120)

    def evaluate(self, key: str) -> EvaluateResult:
        return evaluate_window(self.target(key))

    def publish(self, key: str, generation: int) -> PublishResult:
        return publish_window(self.target(key), generation)

    def newest(self, key: str) -> Link:
        return there(self.chain.newest(key))

    def stale(self) -> list[str]:
        return [key for key in self.chain.windows() if self.chain.stale_reason(self.newest(key))]


def trained(link: Link) -> dict[str, independent.Sums]:
    return {name: link.trained(name).model_dump() for name in ("history", "clicks")}


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    """Two windows, each trained by its own job; tests below go on from there in their order."""
    made = Stages(ads_project(tmp_path_factory.mktemp("stages"), days=2, rows=ROWS))
    for key in (FIRST, SECOND):
        made.plan(key)
        assert made.train(key, f"{key}#0").state == "succeeded"
        assert made.handle.status().registered == 1
    return made


def test_each_window_trains_what_an_independent_reader_counts(stages: Stages) -> None:
    for day, key in enumerate((FIRST, SECOND)):
        counted = expected(stages.made, day)
        assert trained(stages.newest(key)) == counted
        found = stages.evaluate(key)
        assert found.generation == 1
        assert found.rows == {name: sums["rows"] for name, sums in counted.items()}
        assert found.rows_line.startswith("rows  planned = served = trained + dead")
        document = there(stages.chain.judgement(stages.newest(key)))
        assert (document.window, document.rows_agree) == (key, True)
    link = stages.newest(SECOND)
    assert link.parent == Parent(window=FIRST, generation=1)
    points = read_steps(store_of(stages.home).path(link.files["steps"]))
    assert points[-1].step == link.steps
    assert points[-1].rows == {name: link.trained(name).rows for name in points[-1].rows}
    assert points[-1].lag_seconds == 0
    assert max(point.lag_seconds for point in points) <= 86_400


def test_the_job_exports_and_leaves_publication_to_its_stage(stages: Stages) -> None:
    assert stages.chain.published() is None
    assert "saved_model" in stages.newest(FIRST).files
    assert stages.publish(FIRST, 1).state == "published"
    assert stages.publish(SECOND, 1).state == "published"
    assert stages.publish(FIRST, 1).reason == f"window {SECOND} is later and serves"
    assert stages.submit(FIRST, f"{FIRST}#0").state == "trained"
    assert stages.submit(FIRST, "another#0").state == "trained"
    listed = stages.made.forebay("models", "ls", "ads", "--output", "json").stdout
    assert [row["window"] for row in json.loads(listed)] == [FIRST, SECOND]
    why = json.loads(stages.made.forebay("why", "ads", SECOND, "--output", "json").stdout)
    assert (why["state"], why["generation"]) == ("trained", 1)


@pytest.mark.usefixtures("jobs_here")
def test_a_window_asked_for_again_is_read_again_and_makes_the_next_stale(stages: Stages) -> None:
    assert stages.train(FIRST, f"{FIRST}#1", again=True).state == "succeeded"
    assert stages.ledger.generations(FIRST) == [1, 2]
    assert trained(stages.newest(FIRST)) == expected(stages.made, 0)
    assert stages.newest(FIRST).generation == 2
    assert stages.stale() == [SECOND]
    assert stages.submit(FIRST, f"{FIRST}#1", again=True).state == "trained"
    assert "stale (built on generation 1" in stages.publish(SECOND, 1).reason

    assert stages.train(SECOND, f"{SECOND}#1", again=True).state == "succeeded"
    assert stages.stale() == []
    assert stages.newest(SECOND).parent == Parent(window=FIRST, generation=2)
    assert trained(stages.newest(SECOND)) == expected(stages.made, 1)
    assert stages.publish(SECOND, 2).state == "published"


def test_rows_that_do_not_agree_are_bad_data(stages: Stages) -> None:
    link = stages.newest(SECOND)
    lost = {
        name: sums.model_copy(update={"rows": sums.rows - 1}) for name, sums in link.seen.items()
    }
    replace_link(stages.chain, link.model_copy(update={"seen": lost}))
    try:
        with pytest.raises(RowsLostError, match=f"DISAGREE in window {SECOND}"):
            stages.evaluate(SECOND)
    finally:
        replace_link(stages.chain, link)
    assert stages.evaluate(SECOND).generation == 2


@pytest.mark.usefixtures("jobs_here")
def test_the_first_window_of_a_line_trains_its_warm_start_too(tmp_path: Path) -> None:
    """When the line begins, and when both were forgotten; the next window comes alone."""
    pipeline = ads_pipeline()
    pipeline["train"]["warm_start"] = "2026-02-28"
    project = ads_project(tmp_path, days=2, rows=1_000, pipeline=pipeline)
    project.write_source("history", history_source(starts="2026-02-27"))
    write_history(project.files, FIRST_DAY - 2 * DAY, 300)
    made = Stages(project)
    made.plan(FIRST)
    assert made.train(FIRST, "run#0").state == "succeeded"
    assert made.chain.windows() == [WARM_START, FIRST]
    assert made.newest(WARM_START).seen["history"].rows == 300
    assert made.evaluate(FIRST).generation == 1
    for key in (WARM_START, FIRST):
        assert made.ledger.forget(key)
    made.plan(FIRST)
    assert made.train(FIRST, "run#1").state == "succeeded"
    assert [made.newest(key).generation for key in (WARM_START, FIRST)] == [2, 2]
    assert made.evaluate(FIRST).generation == 2
    made.plan(SECOND)
    assert made.train(SECOND, "run#2").state == "succeeded"
    request = json.loads((made.home.job(f"ads.main.{SECOND}.g1") / "job.json").read_text())
    assert [window["key"] for window in request["windows"]] == [SECOND]


@pytest.mark.guarantee(
    "the loss is not finite", "red with window, step and rows; the model that serves stays"
)
def test_a_loss_that_is_not_finite_ends_the_job_and_names_the_place(tmp_path: Path) -> None:
    pipeline = ads_pipeline("towers")
    pipeline["model"] |= {"dense_learning_rate": 1e30, "embedding_learning_rate": 1e30}
    made = Stages(ads_project(tmp_path, days=1, rows=4_000, pipeline=pipeline))
    made.plan(FIRST)
    status = made.train(FIRST, "run#0")
    assert status.state == "failed"
    assert status.restarts["trainer"] == 0, "the same rows give the same result"
    error = there(status.error)
    assert (error.error, error.exit_code) == ("TrainingError", 3)
    assert f"window {FIRST}, step " in error.message
    assert "mixture" in error.message
    assert "of history" in error.message or "of clicks" in error.message
    assert "learning_rate" in error.message
    assert made.chain.newest(FIRST) is None
    why = json.loads(made.made.forebay("why", "ads", FIRST, "--output", "json").stdout)
    assert why["state"] == "failed"
    assert "not finite" in why["reason"]


@pytest.mark.usefixtures("jobs_here")
def test_a_job_that_comes_when_the_line_has_moved_leaves_no_gap(tmp_path: Path) -> None:
    """Both were submitted while the line had no model; the other one has begun it meanwhile."""
    made = Stages(ads_project(tmp_path, days=3, rows=200))
    third = "2026-03-03"
    for key in (FIRST, third):
        made.plan(key)
    late = made.target(third).job_request("ads.main.late", [made.ledger.plan(third, 1)])
    assert made.train(FIRST, "run#0").state == "succeeded"
    status = submit(made.home, late).wait(120)
    assert (status.state, made.chain.windows()) == ("failed", [FIRST])
    error = there(status.error)
    assert error.error == "ConfigError"
    assert f"window {SECOND} is not trained yet" in error.message
