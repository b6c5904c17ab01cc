"""Variants: their names, what is declared about them, and contradictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from support.declared import Declared

from forebay.config.specs.models import Variant
from forebay.config.specs.pipelines import TrainSpec


@pytest.fixture
def declared(tmp_path: Path) -> Declared:
    made = Declared(tmp_path)
    made.sources["clicks"]["event_time"] = "at"
    return made


def test_variants_have_names() -> None:
    compare = ["stream", {"paradigm": "mixed", "delay": "fnw"}, {"paradigm": "batch"}]
    train = TrainSpec.model_validate({"delay": "head", "compare": compare})
    variants = [("mixture", "head"), ("stream",), ("mixed", "fnw"), ("batch",)]
    assert train.variants == [Variant(*each) for each in variants]  # type: ignore[arg-type]
    assert train.paradigms == ["mixture+head", "stream", "mixed+fnw", "batch"]
    assert TrainSpec().paradigms == ["mixture"]


@pytest.mark.parametrize("compare", [["mixture"], ["stream", {"paradigm": "stream"}]])
def test_no_variant_is_trained_twice(compare: list[Any]) -> None:
    with pytest.raises(ValidationError, match="name the same paradigm twice"):
        TrainSpec.model_validate({"compare": compare})
    both = TrainSpec.model_validate({"compare": [{"paradigm": "mixture", "delay": "head"}]})
    assert both.paradigms == ["mixture", "mixture+head"]


def test_a_paradigm_without_stream_rows_has_nothing_to_correct(declared: Declared) -> None:
    declared.pipeline["train"] = {"compare": [{"paradigm": "batch", "delay": "head"}]}
    assert declared.only() == ("delay-feed", "", "delay: head")
    assert "paradigm 'batch' trains on none here; remove it" in declared.message()
    del declared.dataset["streams"]["new"]
    declared.pipeline["train"] = {"paradigm": "mixed", "delay": "fnw"}
    assert declared.only() == ("delay-feed", "", "delay: fnw")


@pytest.mark.parametrize(
    ("compared", "line"), [({"paradigm": "batch"}, "- paradigm: batch"), ("batch", "- batch")]
)
def test_a_compared_mapping_is_checked_like_a_name(
    declared: Declared, compared: object, line: str
) -> None:
    declared.pipeline["train"] = {"paradigm": "stream", "compare": ["mixed", compared]}
    del declared.dataset["streams"]["old"]
    assert declared.only() == ("paradigm-feed", "", line)


@pytest.mark.parametrize(
    "line",
    [
        *("memory_inputs: zero", "adapt_learns: both", "adapt_learns: auto", "gain: 0.05"),
        *("memory_embeddings: true", "embeddings: separate", "stop_gradient: theta_only"),
    ],
)
def test_the_paper_s_mode_is_the_paper_s(declared: Declared, line: str) -> None:
    declared.pipeline["model"] = {"mixture": {"mode": "paper", **yaml.safe_load(line)}}
    assert declared.only() == ("paper-mode", "", line)
    declared.pipeline["model"]["mixture"]["mode"] = "measured"
    assert declared.problems() == []


def test_what_the_paper_leaves_open_stays_open(declared: Declared) -> None:
    mixture = {"embeddings": "shared", "gain": 1, "memory_output": "both"}
    declared.pipeline["model"] = {"mixture": {"mode": "paper", **mixture}}
    assert declared.problems() == []


@pytest.mark.parametrize(
    ("name", "hint", "said"),
    [
        ("stream+head", "", "write {paradigm: stream, delay: head}"),
        ("strem", "stream", "is not one of batch, stream, batch_then_stream, mixed, mixture"),
    ],
)
def test_a_mistaken_name_is_told_what_to_write(
    declared: Declared, name: str, hint: str, said: str
) -> None:
    declared.pipeline["train"] = {"compare": ["mixed", name]}
    assert declared.only() == ("wrong-value", hint, f"- {name}")
    assert f"train.compare[1]: '{name}' " in declared.message()
    assert said in declared.message()
