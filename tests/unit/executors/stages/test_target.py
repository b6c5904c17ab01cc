"""What a stage works on: where its state is, what it trains, and its job's request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.model_lines import record_link
from support.projects import ads_pipeline, declared_project
from support.stages import Stages, noon, replanned, stages, table

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import ConfigError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.stages.target import LineTarget

KEY = "2026-03-01"


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Stages]:
    with stages(tmp_path) as each:
        MEMORY["a"] = table([noon(0)])
        each.source(0)
        each.sink(0)
        yield each


def test_a_line_that_a_folder_declares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    declared_project(tmp_path)
    target = LineTarget.load(tmp_path / "config", "ads", "trial")
    assert (target.pipeline.name, target.line) == ("ads", "trial")
    assert (target.ledger.home.root, target.ledger.pipeline) == (tmp_path / "home", "ads")
    assert target.chain.folder(KEY, 1).parents[1] == tmp_path / "home/training/ads/trial"
    with pytest.raises(ConfigError, match="adz"):
        LineTarget.load(tmp_path / "config", "adz", "main")


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
