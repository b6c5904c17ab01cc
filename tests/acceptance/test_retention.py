"""Old windows lose their big files, and the rest still works: runs, judgements, reports."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.jobs_here import jobs_in_this_process
from support.projects import Project, ads_pipeline, ads_project

from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home
from forebay.home.store.open import store_of

pytestmark = pytest.mark.usefixtures("jobs_here")

DAYS = [f"2026-03-0{day}" for day in range(1, 7)]
Trained = tuple[Project, dict[str, Any]]


def gc(project: Project, *arguments: str) -> dict[str, Any]:
    return json.loads(project.forebay("gc", "--output", "json", *arguments).stdout)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Five windows of six, and how they were judged; two windows are kept."""
    pipeline = ads_pipeline()
    pipeline["job"]["windows_kept"] = 2
    pipeline["job"]["checkpoint"].pop("windows_kept", None)
    project = ads_project(tmp_path_factory.mktemp("kept"), days=6, rows=300, pipeline=pipeline)
    with jobs_in_this_process():
        project.run(DAYS[0], DAYS[0])
        return project, project.run(DAYS[1], DAYS[4])


def test_what_is_shown_goes_and_nothing_that_is_named(trained: Trained) -> None:
    project, _ = trained
    home = Home(project.home)
    told = gc(project, "--dry-run")
    shown = project.forebay("gc", "--dry-run").stdout
    assert "scores  " in shown
    assert DAYS[1] in shown
    assert "would be removed from older windows" in shown
    done = gc(project)
    assert (done["windows"], done["names"]) == (told["windows"], told["names"])
    kinds = {(each["kind"], each["window"]) for each in done["windows"]}
    # Labels come a day late, and one window more after that: three windows keep their scores, and
    # those before them did until they were judged by all of their labels, after the job.
    assert kinds == {(kind, day) for kind in ("scores", "steps") for day in DAYS[:2]}
    chain = ModelChain(home, "ads")
    files = {link.window: set(link.files) for link in chain.links()}
    assert [key for key in DAYS if "checkpoint" in files.get(key, ())] == DAYS[3:5]
    assert files[DAYS[0]] == set()
    named = {each.name for link in chain.links() for each in link.files.values()}
    ledger = Ledger(home, "ads")
    plans = [name for name in store_of(home).names() if name.startswith("plans/")]
    assert set(store_of(home).names()) == named | set(plans)
    assert len(plans) == sum(
        len({source.stream for source in ledger.plan(key, 1).sources.values()}) for key in DAYS[:5]
    )
    assert gc(project)["windows"] == []


def test_a_report_stays_and_a_window_without_its_parent_is_refused(trained: Trained) -> None:
    project, before = trained
    gc(project)
    project.forebay("report", "ads", "--from", DAYS[0], "--to", DAYS[4])
    (path,) = (project.home / "reports").glob("*.json")
    after = json.loads(path.read_text())
    assert [each["window"] for each in after["windows"]] == DAYS[:5]
    assert [each["sources"] for each in after["windows"][1:]] == [
        each["sources"] for each in before["windows"]
    ]
    assert after["rows_agree"]
    (note,) = after["notes"]
    assert note.startswith("windows whose scores are no longer kept (job.windows_kept): 2")
    stages = project.forebay("stage", "evaluate", "ads", DAYS[1])
    assert json.loads(stages.stdout)["rows"]["history"] > 0
    again = ("run", "ads", "--from", DAYS[1], "--to", DAYS[1], "--reprocess")
    done = project.forebay(*again, check=False)
    assert done.returncode == 1
    assert f"window {DAYS[0]} can no longer be built on" in done.stderr
    assert "windows_kept is 2" in done.stderr
    assert f"begin with the window after {DAYS[3]}" in done.stderr
    assert f"--reprocess --from {DAYS[0]}" in done.stderr
    assert Ledger(Home(project.home), "ads").generations(DAYS[1]) == [1]


def test_the_next_window_runs_is_judged_and_published(trained: Trained) -> None:
    project, _ = trained
    gc(project)
    summary = project.run(DAYS[5], DAYS[5])
    assert summary["trained_windows"] == [DAYS[5]]
    assert summary["windows"][0]["parent"] == {"window": DAYS[4], "generation": 1}
    project.forebay("stage", "evaluate", "ads", DAYS[5])
    done = project.forebay("stage", "publish", "ads", DAYS[5], "--generation", "1")
    assert json.loads(done.stdout)["state"] == "published"
    chain = ModelChain(Home(project.home), "ads")
    kept = [link.window for link in chain.links() if "checkpoint" in link.files]
    assert kept == DAYS[4:], "what the run itself left over went with it"
    assert [link.window for link in chain.links()] == DAYS
