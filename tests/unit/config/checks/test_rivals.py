"""`train.compare: auto`: what is trained beside the declared variant, and that it stays."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from pydantic import ValidationError
from support.declared import Declared

from forebay.config.checks import rivals
from forebay.config.load import Project, load_one, load_project
from forebay.config.specs.models import VARIANTS
from forebay.config.specs.pipelines import TrainSpec
from forebay.errors import ConfigError
from forebay.mixture.advice.regimes import measured_regimes

ALL = ["mixture", "stream+fnw", "batch", "mixed"]


@pytest.fixture
def declared(tmp_path: Path) -> Declared:
    made = Declared(tmp_path)
    made.sources["clicks"]["event_time"] = "at"
    made.pipeline["train"] = {"compare": "auto"}
    return made


def loaded(declared: Declared) -> Project:
    declared.problems()
    return load_project(declared.config, {})


def trained(declared: Declared) -> list[str]:
    return loaded(declared).pipelines["ads"].train.paradigms


def test_all_that_suit_the_streams(declared: Declared) -> None:
    assert declared.problems() == []
    assert trained(declared) == ALL
    assert load_one(declared.config, "ads", {}).pipelines["ads"].train.paradigms == ALL
    declared.pipeline["train"] |= {"paradigm": "batch", "seeds": 2}
    assert trained(declared) == ["batch", "stream+fnw", "mixed", "mixture"]
    declared.pipeline["train"] |= {"paradigm": "mixture", "delay": "fnw"}
    assert trained(declared) == ["mixture+fnw", "stream+fnw", "batch", "mixed"]
    declared.pipeline["train"] |= {"paradigm": "batch_then_stream"}
    alike = "batch_then_stream+fnw is stream+fnw without a warm start"
    assert trained(declared) == ["batch_then_stream+fnw", "batch", "mixed", "mixture"], alike
    declared.pipeline["train"] |= {"paradigm": "mixture"}
    declared.pipeline["train"]["warm_start"] = "2026-02-01"
    assert trained(declared) == ["mixture+fnw", "batch_then_stream+fnw", "batch", "mixed"]
    declared.pipeline["model"] = {"kind": "count"}
    assert trained(declared) == ["mixture+fnw"]


@pytest.mark.parametrize("stream", ["old", "new"])
def test_one_feed_has_no_rivals(declared: Declared, stream: str) -> None:
    del declared.dataset["streams"][stream]
    feed = {"old": "stream", "new": "batch"}[stream]
    assert declared.problems() == []
    assert trained(declared) == [feed], "`mixed` would learn the same"


def test_what_a_check_refuses_is_left_out(declared: Declared) -> None:
    del declared.sources["clicks"]["event_time"]
    assert declared.problems() == [], "a correction would need it"
    assert trained(declared) == ["mixture", "batch", "mixed", "stream"]


def test_what_is_wrong_anyway_is_told_once(declared: Declared) -> None:
    del declared.dataset["streams"]["old"]
    declared.pipeline["train"]["paradigm"] = "batch"
    assert declared.only()[0] == "paradigm-feed"


def test_within_the_machine_s_memory(declared: Declared, monkeypatch: pytest.MonkeyPatch) -> None:
    declared.dataset["features"]["user"]["buckets"] = 1 << 20
    monkeypatch.setattr(rivals, "limit_bytes", lambda: 300 << 20)
    assert trained(declared) == ["mixture"]
    (note,) = declared.problems()
    assert (note.code, note.severity) == ("rivals", "note")
    assert note.message == (
        "compare: auto leaves out stream+fnw, batch, mixed, stream: the model would take more "
        "than 0.1 GiB, half of the memory that the trainer has"
    )
    monkeypatch.setattr(rivals, "limit_bytes", lambda: 4 << 30)
    declared.pipeline["job"] = {"roles": {"trainer": {"memory": "300MiB"}}}
    assert trained(declared) == ["mixture"]
    del declared.pipeline["job"]
    declared.pipeline["train"]["paradigm"] = "batch"
    monkeypatch.setattr(rivals, "limit_bytes", lambda: 420 << 20)
    assert trained(declared) == ["batch", "stream+fnw", "mixed", "stream"], "a mixture takes more"


def test_jobs_read_what_was_chosen(declared: Declared) -> None:
    written = loaded(declared).declared("ads")
    assert written is not None
    train = TrainSpec.model_validate(written.pipeline["train"])
    assert train.paradigms == ALL
    assert written.pipeline["train"]["compare"][0] == {"paradigm": "stream", "delay": "fnw"}


def test_a_line_keeps_what_it_was_begun_with(declared: Declared) -> None:
    begun = [VARIANTS[name] for name in ("mixture", "stream+head", "stream")]
    found = loaded(declared)
    assert found.keep_rivals("ads", []).train.paradigms == ALL, "it is not begun"
    assert found.keep_rivals("ads", begun).train.variants == begun
    assert found.pipelines["ads"].train.variants == begun
    written = found.declared("ads")
    assert written is not None
    assert TrainSpec.model_validate(written.pipeline["train"]).variants == begun
    declared.pipeline["train"] = {"compare": ["stream"]}
    kept = loaded(declared).keep_rivals("ads", begun)
    assert kept.train.paradigms == ["mixture", "stream"], "it is what is written"


def test_what_a_begun_line_needs_is_still_checked(declared: Declared) -> None:
    begun = [VARIANTS["mixture"], VARIANTS["mixture+fnw"]]
    del declared.sources["clicks"]["event_time"]
    with pytest.raises(ConfigError, match=r"with its line's rivals .*\n.*delay: 'fnw' learns how"):
        loaded(declared).keep_rivals("ads", begun)


@pytest.mark.parametrize("written", ["Auto", "all", ["auto"], {"auto": None}, True])
def test_nothing_else_is_auto(written: Any) -> None:
    with pytest.raises(ValidationError):
        TrainSpec.model_validate({"compare": written})


def test_who_corrects_with_a_head_is_compared_with_others_that_do(declared: Declared) -> None:
    late = {"paradigm": "mixture", "delay": "head", "compare": "auto"}
    declared.pipeline["train"] = late
    assert trained(declared) == ["mixture+head", "stream+fnw", "batch", "mixed+head"]
    declared.pipeline["train"] = late | {"paradigm": "mixed"}
    assert trained(declared) == ["mixed+head", "stream+fnw", "batch", "mixture+head"]


def test_measured_regimes_have_one_that_is_near_their_best() -> None:
    chosen = ("mixture+head", "batch_then_stream+fnw", "batch", "mixed+head")
    losses = [min(regime.loss_of(name) for name in chosen) for regime in measured_regimes().regimes]
    assert mean(losses) < 0.002
