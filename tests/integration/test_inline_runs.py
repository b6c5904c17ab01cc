"""Whole runs of a generated DAG in one process: Airflow's own API and states, stand-ins for stages.

What needs a scheduler, workers and a triggerer is shown elsewhere, with real ones.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.inline_airflow import InlineRun, Scenario, run_inline
from support.projects import ads_pipeline, declared_project
from support.toy_stage import ToyStage, job_of

from forebay.dags.sync import sync

STAGES = ("timer", "source", "sink", "submit", "evaluate", "publish")
TASKS = {
    "timer",
    "sources.history",
    "sources.clicks",
    "joiner",
    "sink",
    "data_executors",
    "training_executors",
    "evaluate",
    "publish",
}
SECRET = "planted-inline-secret"


def listed(key: str) -> dict[str, Any]:
    told = {"state": "listed", "window": key, "source": "any", "rows": 10, "tasks": 2}
    return {"prints": told, "says": [f"window {key}: 10 rows"]}


def answers(key: str, **changes: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What stages answer about a window that plans and trains without trouble."""
    job = f"ads.main.{key}.g1"
    generation = {"window": key, "generation": 1}
    submitted = {**generation, "state": "submitted", "job_id": job, "epoch": 1}
    return {
        "timer": [{"prints": {"state": "open", "window": key, "reason": "it has no plan yet"}}],
        "source": [listed(key)],
        "sink": [{"prints": {**generation, "tasks": 4, "recorded": True}}],
        "submit": [{"prints": submitted, **job_of(job, "succeeded", "ads", key)}],
        "evaluate": [{"prints": {**generation, "metrics": {"mixture": {"auc": 0.71}}}}],
        "publish": [{"prints": {**generation, "state": "published", "path": "/model"}}],
        **changes,
    }


def trained(key: str) -> list[dict[str, Any]]:
    told = {
        "state": "trained",
        "window": key,
        "generation": 3,
        "reason": "trained",
        "next": "clear",
    }
    return [{"prints": told, "says": [f"window {key}: trained", "next: clear"]}]


def scenarios() -> list[Scenario]:
    def at(name: str, key: str, conf: Any = None, time: str = "00:00", **changes: Any) -> Scenario:
        return Scenario(name, f"{key}T{time}:00Z", answers(key, **changes), conf or {})

    corrupt = [{"code": 3, "says": ["reading", "error: part-0.parquet is corrupt at byte 7"]}]
    broken = [{"code": 4, "says": [f"error: the disk of {SECRET} is full"]}, listed("2026-03-07")]
    return [
        at("fresh", "2026-03-01", time="10:37"),
        at("trained", "2026-03-02", timer=trained("2026-03-02")),
        at("again", "2026-03-03", {"reprocess": True}),
        at("slip", "2026-03-04", {"reproces": True}),
        Scenario("no date", None, answers("2026-03-05")),
        at("corrupt", "2026-03-06", source=corrupt),
        at("broken", "2026-03-07", source=broken),
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, InlineRun]:
    root = tmp_path_factory.mktemp("inline")
    toy = ToyStage.make(root / "toy")
    pipeline = ads_pipeline(roles={"data": {"runtime": {"python": toy.python}}})
    pipeline["schedule"] = {"grace": "0s", "retries": 2, "retry_delay": "0s"}
    project = declared_project(root / "project", pipeline)
    sync(project.root / "config", root / "dags")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANTED_PASSWORD", SECRET)
        return run_inline(root, root / "dags", "ads", toy.folder, scenarios())


def not_run(run: InlineRun, *but: str) -> set[str | None]:
    return {state for name, state in run.tasks.items() if name not in but}


def test_a_window_from_its_timer_to_its_publication(runs: dict[str, InlineRun]) -> None:
    run = runs["fresh"]
    assert (run.state, run.tasks) == ("success", dict.fromkeys(TASKS, "success"))
    assert {stage: len(run.calls[stage]) for stage in STAGES} == dict.fromkeys(STAGES, 1) | {
        "source": 2
    }
    # 10:37 of a daily pipeline means that day.
    assert {call[1] for calls in run.calls.values() for call in calls} == {"2026-03-01"}
    assert "--again" not in str(run.calls)


def test_returned_values_are_counts_and_references(runs: dict[str, InlineRun]) -> None:
    left = runs["fresh"].returned
    assert set(left) == TASKS - {"joiner"}
    assert left["sink"]["tasks"] == 4
    assert left["data_executors"]["job_id"] == "ads.main.2026-03-01.g1"
    assert left["data_executors"]["claim"].endswith("/data_executors/0")
    assert left["training_executors"]["rows"] == {"clicks": 12, "views": 3}
    assert left["publish"]["path"] == "/model"
    assert all(len(json.dumps(value)) < 1_000 for value in left.values())
    links = runs["fresh"].links
    assert links["evaluate"]["_link_TrainingLink"].endswith("/tasks/training_executors")
    assert links["training_executors"]["_link_MetricsLink"].endswith("/tasks/evaluate/xcom")


def test_stages_are_heard_in_the_log(runs: dict[str, InlineRun]) -> None:
    log = runs["fresh"].log
    assert "forebay stage source ads 2026-03-01 clicks" in log
    assert "--asked" not in log
    assert "window 2026-03-01: 10 rows" in log
    assert "trained in generation 1: clicks 12, views 3 rows, 4 steps" in log


def test_a_trained_window_ends_green_at_once_and_says_how_to_do_it_again(
    runs: dict[str, InlineRun],
) -> None:
    run = runs["trained"]
    assert run.state == "success"
    assert run.tasks["timer"] == "success"
    assert not_run(run, "timer") == {"skipped"}
    assert [stage for stage in STAGES if run.calls[stage]] == ["timer"]
    assert run.returned["timer"]["next"] == "clear"
    assert run.returned["timer"]["generation"] == 3
    assert run.log.index("window 2026-03-02: trained") < run.log.index("next: clear")


def test_conf_reaches_the_stages_that_decide(runs: dict[str, InlineRun]) -> None:
    run = runs["again"]
    assert run.state == "success"
    again = {stage for stage in STAGES for call in run.calls[stage] if "--again" in call}
    assert again == {"timer", "sink", "submit"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("slip", "unknown conf key 'reproces': a run accepts"),
        ("no date", "this run has no logical date, so it does not belong to a window"),
    ],
)
def test_a_run_that_means_nothing_fails_in_its_first_task(
    name: str, text: str, runs: dict[str, InlineRun]
) -> None:
    run = runs[name]
    assert (run.state, run.tasks["timer"]) == ("failed", "failed")
    assert not_run(run, "timer") == {"upstream_failed"}
    assert text in run.log
    assert not any(run.calls.values())


def test_bad_data_fails_its_source_at_once(runs: dict[str, InlineRun]) -> None:
    run = runs["corrupt"]
    assert run.state == "failed"
    assert (run.tasks["sources.clicks"], run.tasks["sources.history"]) == ("failed", "failed")
    assert not_run(run, "timer", "sources.clicks", "sources.history") == {"upstream_failed"}
    assert len(run.calls["source"]) == 2  # one try each
    assert "part-0.parquet is corrupt at byte 7" in run.log


def test_broken_infrastructure_is_tried_again(runs: dict[str, InlineRun]) -> None:
    run = runs["broken"]
    assert run.state == "success"
    assert len(run.calls["source"]) == 3
    assert "the disk of ${PLANTED_PASSWORD} is full" in run.log


def test_no_secret_is_in_the_log_of_a_task(runs: dict[str, InlineRun]) -> None:
    assert SECRET not in "".join(run.log for run in runs.values())
