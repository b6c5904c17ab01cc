"""Contradictions in what is declared about labels: one problem each, at its key."""

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

KNOWN = {"column": "clicked", "known_at": "known"}


@pytest.fixture
def declared(tmp_path: Path) -> Declared:
    """With a column that says when labels were known, and a head that learns how late they are."""
    made = Declared(tmp_path)
    columns = made.sources["history"]["columns"]
    made.sources["history"]["columns"] = {**columns, "known": "timestamp"}
    made.sources["clicks"]["event_time"] = "at"
    made.dataset["label"] = dict(KNOWN)
    made.dataset["streams"]["old"]["offset"] = "24h"
    made.pipeline["train"] = {"delay": "head", "compare": [{"paradigm": "stream", "delay": "fnw"}]}
    return made


def test_all_that_fits(declared: Declared) -> None:
    assert declared.problems() == []
    declared.dataset["label_join"] = "24h"
    assert declared.problems() == []


def test_batch_sources_declare_known_at_as_a_timestamp(declared: Declared) -> None:
    declared.dataset["label"]["known_at"] = "knwon"
    assert declared.only() == ("known-at", "known", "known_at: knwon")
    assert declared.message() == "known_at: column 'knwon' is not declared in source history"
    declared.dataset["label"]["known_at"] = "event"
    assert declared.only() == ("known-at", "", "known_at: event")
    assert "is int in source history, not timestamp" in declared.message()


def test_known_at_is_of_batch_sources(declared: Declared) -> None:
    del declared.dataset["streams"]["old"]
    declared.pipeline["train"] = {"paradigm": "stream"}
    assert declared.only() == ("known-at", "", "known_at: known")
    assert "no stream feeds batch" in declared.message()


def test_when_a_label_was_known_is_no_feature(declared: Declared) -> None:
    columns = declared.sources["clicks"]["columns"]
    declared.sources["clicks"]["columns"] = {**columns, "known": "timestamp"}
    feature = {"encode": "bucketise", "column": "known", "part": "hour", "boundaries": [6]}
    declared.dataset["features"]["hour_of_label"] = feature
    assert declared.only() == ("label-as-feature", "", "hour_of_label:")


def test_label_join_reaches_as_far_as_the_offsets(declared: Declared) -> None:
    declared.dataset["label_join"] = "23h"
    assert declared.only() == ("label-join", "1d", "label_join: 23h"), "a day is the largest"


@pytest.mark.parametrize(
    ("train", "line"),
    [
        ({"delay": "head"}, "delay: head"),
        ({"compare": [{"paradigm": "mixed", "delay": "fnw"}]}, "delay: fnw"),
    ],
)
def test_a_correction_needs_the_time_of_stream_events(
    declared: Declared, train: dict[str, Any], line: str
) -> None:
    del declared.sources["clicks"]["event_time"]
    declared.pipeline["train"] = train
    code, _, found = declared.only()
    assert (code, found) == ("delay-time", line)
    assert "source 'clicks' has no event_time" in declared.message()
    declared.pipeline["model"] = {"kind": "count"}
    assert declared.problems() == []


def test_a_correction_needs_a_stream_that_says_when_it_published(declared: Declared) -> None:
    table = {"kind": "parquet", "options": {"path": "fresh"}}
    declared.sources["clicks"] = {**declared.sources["history"], **table}
    declared.dataset["streams"]["new"]["feed"] = "stream"
    declared.pipeline["train"] = {"delay": "head"}
    assert declared.only()[0::2] == ("delay-time", "delay: head")
    assert "does not say when its rows were published" in declared.message()


def test_a_correction_needs_complete_labels(declared: Declared) -> None:
    del declared.dataset["streams"]["old"]
    declared.dataset["label"] = {"column": "clicked"}
    declared.pipeline["train"] = {"paradigm": "stream", "delay": "head"}
    assert declared.only()[0::2] == ("delay-feed", "delay: head")


def test_rows_of_a_stream_that_are_their_own_complete_labels_are_noted(declared: Declared) -> None:
    """Of what never changes a row; a table may have got its labels meanwhile."""
    declared.dataset["label"] = {"column": "clicked"}
    again = {"sources": ["clicks"], "offset": "48h", "feed": "batch"}
    declared.dataset["streams"]["again"] = again
    assert declared.only() == ("own-labels", "", "feed: batch")
    (problem,) = declared.problems()
    assert problem.severity == "note"
    said = "'again' feeds batch with the rows of source 'clicks' that stream 'new' reads"
    assert said in problem.message
    declared.pipeline |= {"model": {"kind": "count"}, "train": {}}
    assert declared.problems() == []


def test_a_table_of_two_streams_may_have_got_its_labels_meanwhile(declared: Declared) -> None:
    declared.dataset["label"] = {"column": "clicked"}
    declared.pipeline["train"] = {"paradigm": "mixture"}
    declared.dataset["streams"] = {
        "now": {"sources": ["history"], "feed": "stream"},
        "old": {"sources": ["history"], "offset": "24h"},
    }
    assert declared.problems() == []


LABELS: dict[str, dict[str, Any]] = {
    "click": {"column": "clicked", "delay": "none"},
    "sale": {"column": "sold", "known_at": "known"},
}


@pytest.fixture
def several(tmp_path: Path) -> Declared:
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


def test_all_that_fits_several_labels(several: Declared) -> None:
    assert several.problems() == []
    high = {"column": "clicked", "greater_than": 0.5, "weight": 3}
    several.dataset["named_labels"]["high"] = high
    several.pipeline["job"] = {"publish": {"when": "gate", "label": "sale"}}
    assert several.problems() == []


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
def test_one_slip_in_several_labels(
    several: Declared, key: str, value: Any, found: str, words: str
) -> None:
    several.pipeline["job"] = {}
    part, _, last = key.rpartition(".")
    if key == "publish":
        several.pipeline["job"][key] = value
    elif part == "features":
        several.dataset[part][last] = value
    else:
        labels = several.dataset["named_labels"]
        (labels[part] if part else labels)[last] = value
    assert "|".join(several.only()) == found
    assert words in several.message()


def test_a_correction_that_no_variant_makes(several: Declared) -> None:
    several.dataset["named_labels"]["sale"]["delay"] = "fnw"
    assert several.problems() == []
    several.pipeline["train"] = {"paradigm": "mixture"}
    assert several.only() == ("label-delay", "", "delay: fnw")
    assert "write `delay: fnw` under train too" in several.message()
    several.pipeline["train"] = {"delay": "head", "compare": ["stream"]}
    several.dataset["named_labels"]["sale"]["delay"] = "none"
    assert several.only() == ("label-delay", "", "named_labels:"), "nothing is corrected"


def test_the_gate_of_one_label_names_none(tmp_path: Path) -> None:
    declared = Declared(tmp_path)
    declared.pipeline["job"] = {"publish": {"when": "gate", "label": "click"}}
    assert declared.only() == ("unknown-label", "", "label: click")
