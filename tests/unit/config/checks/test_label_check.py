"""Contradictions in what is declared about labels: one problem each, at its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.declared import Declared

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
