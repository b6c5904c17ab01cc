"""Publication of one window: what serves, what stays, and why."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import model_lines
from support.links import link
from support.projects import ads_pipeline
from support.there import there

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.errors import DataError, InfrastructureError, UsageError
from forebay.executors.judging.gate import GateDecision
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.results import PublishResult
from forebay.executors.stages.target import LineTarget
from forebay.home.paths import Home
from forebay.home.store.open import store_of

NOW = datetime(2026, 3, 5, tzinfo=UTC)


def pipeline(**job: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({"name": "ads", **ads_pipeline(**job)})


def record(chain: ModelChain, window: str, generation: int, parent: tuple[str, int] | None) -> None:
    trained = link(window, generation=generation, parent=parent)
    model_lines.record(chain, trained)
    model_lines.export(chain, trained)


def model(home: Home, window: str) -> str:
    found = there(ModelChain(home, "ads").newest(window))
    return store_of(home).url(found.files["saved_model"])


def publish(
    home: Home, window: str, generation: int, spec: PipelineSpec | None = None
) -> PublishResult:
    spec = spec or pipeline()
    project = Project(home.root, home.root, {}, {}, [], {}, {})
    line = LineTarget(project, spec, home, "main")
    return publish_window(line.at(spec.dataset.grid.parse(window)), generation)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    chain = ModelChain(home, "ads")
    record(chain, "2026-03-01", 1, None)
    record(chain, "2026-03-02", 1, ("2026-03-01", 1))
    return home


def test_stale_and_replaced_models_are_kept_back(home: Home) -> None:
    record(ModelChain(home, "ads"), "2026-03-01", 2, None)
    assert publish(home, "2026-03-02", 1).reason == (
        "generation 1 of window 2026-03-02 is stale (built on generation 1 of 2026-03-01)"
    )
    replaced = publish(home, "2026-03-01", 1)
    assert replaced.reason == "window 2026-03-01 has been trained again, as generation 2"
    assert publish(home, "2026-03-01", 2).state == "published"


def test_a_pipeline_may_publish_nothing(home: Home) -> None:
    kept = publish(home, "2026-03-02", 1, pipeline(publish={"when": "never"}))
    assert (kept.state, kept.path) == ("kept", "")
    assert "job.publish.when: never" in kept.reason


def test_what_the_gate_decided_is_said(home: Home) -> None:
    chain = ModelChain(home, "ads")
    words = "stream serves: at event time, by auc, stream is better than mixture"
    decided = GateDecision(variant="stream", declared="mixture", words=words)
    newest = there(chain.newest("2026-03-02"))
    stored = store_of(home).put("models", "gate", decided.model_dump_json().encode())
    chain.add_file(newest, "gate", stored)
    done = publish(home, "2026-03-02", 1, pipeline(publish={"when": "gate"}))
    assert (done.state, done.variant, done.gate) == ("published", "stream", words)
    before = publish(home, "2026-03-01", 1)
    assert (before.state, before.variant, before.gate) == ("kept", "", "")


def test_a_model_that_is_damaged_does_not_serve(home: Home) -> None:
    before, place = publish(home, "2026-03-01", 1), Path(model(home, "2026-03-02"))
    place.write_bytes(b"bytez")
    with pytest.raises(DataError, match=f"{place} is damaged"):
        publish(home, "2026-03-02", 1)
    assert publish(home, "2026-03-01", 1) == before
    place.write_bytes(b"bytes")
    assert publish(home, "2026-03-02", 1).state == "published"


def test_what_is_not_there_is_an_error(home: Home) -> None:
    with pytest.raises(UsageError, match="generation 3 of window 2026-03-02 is not trained"):
        publish(home, "2026-03-02", 3)
    shutil.rmtree(Path(model(home, "2026-03-02")).parent)
    with pytest.raises(InfrastructureError, match=r"has no exported model.*some-.* is gone"):
        publish(home, "2026-03-02", 1)
    inner = link("2026-03-03", parent=("2026-03-02", 1))
    model_lines.record(ModelChain(home, "ads"), inner)
    with pytest.raises(InfrastructureError, match=r"publish\.windows_kept is 400\)\. Train"):
        publish(home, "2026-03-03", 1)


def test_a_pin_keeps_a_later_model_back_whatever_is_stale_or_trained_again(home: Home) -> None:
    chain = ModelChain(home, "ads")
    first = there(chain.newest("2026-03-01"))
    chain.serve(first.model, "serve", NOW, "the second is bad")
    pinned = "window 2026-03-01 is pinned and serves until `forebay models unpin ads`"
    kept = publish(home, "2026-03-02", 1)
    assert (kept.state, kept.reason, kept.path) == ("kept", pinned, model(home, "2026-03-01"))
    record(chain, "2026-03-01", 2, None)
    assert publish(home, "2026-03-01", 2).reason == pinned
    chain.begin_anew(forget_plans=True)
    record(chain, "2026-03-01", 3, None)
    assert publish(home, "2026-03-01", 3).reason == pinned
    assert there(chain.published()).generation == 1
    assert chain.unpin()
    assert publish(home, "2026-03-01", 3).state == "published"
