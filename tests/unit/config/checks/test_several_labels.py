"""Several labels of one dataset: what they mean, and how they can contradict each other."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.declared import PIPELINE, Declared
from support.learning import dataset

from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.feeds import joined_labels
from forebay.config.specs.labels import delay_of
from forebay.config.specs.models import Variant
from forebay.config.specs.pipelines import PipelineSpec

LABELS: dict[str, dict[str, Any]] = {
    "click": {"column": "clicked", "delay": "none"},
    "sale": {"column": "sold", "known_at": "known"},
}


@pytest.fixture
def declared(tmp_path: Path) -> Declared:
    made = Declared(tmp_path)
    for source in made.sources.values():
        source["columns"] = {**source["columns"], "sold": "int", "known": "timestamp"}
        source["event_time"] = "at"
    del made.dataset["label"]
    made.dataset["named_labels"] = {name: dict(label) for name, label in LABELS.items()}
    made.dataset["streams"]["old"]["offset"] = "24h"
    made.pipeline["train"] = {"delay": "head", "compare": ["stream"]}
    return made


def labelled(**changes: Any) -> DatasetSpec:
    return dataset({"y": {"encode": "hash", "buckets": 9}}, **{"label": None, **changes})


def test_all_that_fits(declared: Declared) -> None:
    assert declared.problems() == []
    high = {"column": "clicked", "greater_than": 0.5, "weight": 3}
    declared.dataset["named_labels"]["high"] = high
    declared.pipeline["job"] = {"publish": {"when": "gate", "label": "sale"}}
    assert declared.problems() == []


def test_one_label_or_several_by_name() -> None:
    one = dataset({"y": {"encode": "hash", "buckets": 9}})
    assert (list(one.targets), one.further_labels) == ([""], [])
    two = labelled(named_labels=LABELS)
    assert (list(two.targets), two.further_labels) == (["click", "sale"], ["sale"])
    assert two.label_named("") is two.named_labels["click"]
    assert [two.label_key(name) for name in ("click", "sale", None)] == ["", "sale", ""]
    assert one.label_key(None) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "label is missing"),
        ({"named_labels": LABELS, "label": {"column": "y"}}, "not both"),
        ({"named_labels": {"click": LABELS["click"]}}, "write it as `label`"),
        ({"named_labels": {f"l{n}": {"column": "y"} for n in range(9)}}, "at most 8"),
        ({"named_labels": LABELS | {"x": {"column": "y", "weight": 0}}}, "greater than 0"),
    ],
)
def test_what_is_no_set_of_labels(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        labelled(**changes)


@pytest.mark.parametrize(
    ("variant", "own", "meant"),
    [(*("none", "head"), "none"), (*("head", None), "head")]
    + [("head", own, own) for own in ("none", "fnw")],
)
def test_a_label_says_how_variants_that_correct_do_so(variant: Any, own: Any, meant: str) -> None:
    label = labelled(named_labels=LABELS | {"x": {"column": "y", "delay": own}}).named_labels["x"]
    assert delay_of(label, Variant("stream", variant)) == meant


def test_labels_that_are_joined_and_how_far() -> None:
    labels = LABELS | {"late": {"column": "y", "label_join": "72h"}}
    more = {"name": "p", "dataset": labelled(named_labels=labels), "train": {"delay": "head"}}
    found = PipelineSpec.model_validate(PIPELINE | more)
    assert joined_labels(found) == ["sale", "late"]
    spec = found.dataset
    hours = [spec.label_joined_within(key) / timedelta(hours=1) for key in ("", "sale", "late")]
    assert hours == [0, 0, 72]
    assert spec.label_horizon == 4  # of days


HASH = {"encode": "hash", "buckets": 9}
HOUR = {"encode": "bucketise", "column": "known", "part": "hour", "boundaries": [6]}


@pytest.mark.parametrize(
    ("key", "value", "found", "words"),
    [
        ("again", {"column": "clicked"}, "label-twice||column: clicked", "rule as label 'click'"),
        ("a b", {"column": "mobile"}, "name||a b:", "a name is"),
        ("memory_of_a", {"column": "mobile"}, "name||memory_of_a:", "another name"),
        ("sale.column", "sodl", "unknown-column|sold|column: sodl", "label 'sale': column 'sodl'"),
        ("sale.positive", "yes", "positive-type||positive: 'yes'", ""),
        ("sale", {"column": "sold", "negative": 0}, "label-rule||negative: 0", ""),
        ("features.sold", HASH, "label-as-feature||sold:", ""),
        ("features.hour", HOUR, "label-as-feature||hour:", ""),
        ("sale.known_at", "knwon", "known-at|known|known_at: knwon", ""),
        ("sale", {"column": "sold", "label_join": "5h"}, "label-join|1d|label_join: 5h", ""),
        ("publish", {"when": "gate", "label": "sael"}, "unknown-label|sale|label: sael", ""),
        ("publish", {"when": "always", "label": "sale"}, "unread-label||label: sale", ""),
    ],
)
def test_one_slip(declared: Declared, key: str, value: Any, found: str, words: str) -> None:
    declared.pipeline["job"] = {}
    part, _, last = key.rpartition(".")
    if key == "publish":
        declared.pipeline["job"][key] = value
    elif part == "features":
        declared.dataset[part][last] = value
    else:
        labels = declared.dataset["named_labels"]
        (labels[part] if part else labels)[last] = value
    assert "|".join(declared.only()) == found
    assert words in declared.message()


def test_a_correction_that_no_variant_makes(declared: Declared) -> None:
    declared.dataset["named_labels"]["sale"]["delay"] = "fnw"
    assert declared.problems() == []
    declared.pipeline["train"] = {"paradigm": "mixture"}
    assert declared.only() == ("label-delay", "", "delay: fnw")
    assert "write `delay: fnw` under train too" in declared.message()
    declared.pipeline["train"] = {"delay": "head", "compare": ["stream"]}
    declared.dataset["named_labels"]["sale"]["delay"] = "none"
    assert declared.only() == ("label-delay", "", "named_labels:"), "nothing is corrected"


def test_the_gate_of_one_label_names_none(tmp_path: Path) -> None:
    declared = Declared(tmp_path)
    declared.pipeline["job"] = {"publish": {"when": "gate", "label": "click"}}
    assert declared.only() == ("unknown-label", "", "label: click")
