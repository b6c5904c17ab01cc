"""Contradictions between source, stream, dataset and features: one problem each, at its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.declared import COLUMNS, Declared
from support.there import there

from forebay.config.checks.column_fit import feature_misfits, label_misfits
from forebay.config.load import load_one, load_project
from forebay.config.specs.features import CrossFeature, HashFeature, VocabularyFeature
from forebay.config.specs.labels import LabelSpec
from forebay.config.specs.sources import ColumnType


@pytest.fixture
def declared(tmp_path: Path) -> Declared:
    return Declared(tmp_path)


HASH = {"encode": "hash", "buckets": 9}
ANSWER = {"column": "clicked", "encode": "numeric"}


@pytest.mark.parametrize(
    ("key", "value", "only"),
    [
        ("features.usr", HASH, ("unknown-column", "user", "usr:")),
        ("features.usr", HASH | {"column": "usre"}, ("unknown-column", "user", "column: usre")),
        ("event_id", ["event", "evnt"], ("unknown-column", "event", "- evnt")),
        ("label.column", "click", ("unknown-column", "clicked", "column: click")),
        ("event_id", "tags", ("event-id-type", "", "event_id: tags")),
        ("features.answer", ANSWER, ("label-as-feature", "", "column: clicked")),
        ("streams.a/b", {"sources": ["clicks"], "offset": "1h"}, ("name", "", "a/b:")),
    ],
)
def test_one_slip_in_a_dataset(
    declared: Declared, key: str, value: Any, only: tuple[str, str, str]
) -> None:
    *parents, last = key.split(".")
    part = declared.dataset
    for parent in parents:
        part = part[parent]
    part[last] = value
    assert declared.only() == only


FITTING = [
    ("hash", "user event mobile tags seen"),
    ("vocabulary", "user event mobile tags seen"),
    ("bucketise", "event price mobile seen vector"),
    ("numeric", "event price mobile"),
]
MORE: dict[str, dict[str, Any]] = {
    "hash": {"buckets": 9},
    "vocabulary": {"values": ["1"]},
    "bucketise": {"boundaries": [1]},
    "numeric": {},
}


@pytest.mark.parametrize(("encode", "fitting"), FITTING)
@pytest.mark.parametrize("column", COLUMNS)
def test_encodings_and_types(declared: Declared, encode: str, fitting: str, column: str) -> None:
    feature = {"encode": encode, "column": column, **MORE[encode]}
    if encode == "vocabulary" and column == "mobile":
        feature["values"] = ["true"]
    declared.dataset["label"]["column"] = "mobile" if column == "clicked" else "clicked"
    declared.dataset["features"]["f"] = feature
    if column in [*fitting.split(), "clicked"]:
        assert declared.problems() == []
    else:
        assert declared.only() == ("encode-type", "", f"encode: {encode}")


@pytest.mark.parametrize("encode", MORE)
def test_a_part_of_a_timestamp_fits_every_encoding(declared: Declared, encode: str) -> None:
    feature = {"encode": encode, "column": "at", "part": "hour", **MORE[encode]}
    declared.dataset["features"]["f"] = feature
    assert declared.problems() == []
    feature["column"] = "event"
    assert declared.only() == ("part-type", "", "part: hour")


def test_a_cross_takes_ids(declared: Declared) -> None:
    feature = {"encode": "cross", "columns": ["user", "event"], "buckets": 9}
    declared.dataset["features"]["f"] = feature
    assert declared.problems() == []
    for column in ("price", "at", "tags"):
        feature["columns"] = ["user", column]
        assert declared.only() == ("encode-type", "", "encode: cross")


def test_a_vocabulary_value_that_is_never_met(declared: Declared) -> None:
    for column, value in (("mobile", "yes"), ("event", "one"), ("seen", "x")):
        feature = {"encode": "vocabulary", "column": column, "values": [value]}
        declared.dataset["features"]["f"] = feature
        assert declared.only()[0] == "vocabulary-type"


def test_a_column_that_one_source_lacks(declared: Declared) -> None:
    declared.sources["clicks"]["columns"] = {k: v for k, v in COLUMNS.items() if k != "user"}
    assert declared.only()[0] == "unknown-column"
    assert "is not declared in source clicks" in declared.message()


def test_a_column_of_two_types(declared: Declared) -> None:
    declared.sources["clicks"]["columns"] = {**COLUMNS, "user": "int"}
    assert declared.only() == ("column-types", "", "user:")
    declared.dataset["features"] = {"event": HASH}
    assert declared.problems() == []  # nobody uses the column


def test_a_slice_has_one_value_for_a_row(declared: Declared) -> None:
    for name in ("tags", "mobile"):
        declared.dataset["features"][name] = HASH
    declared.dataset["slices"] = ["mobile", "tags"]
    (problem,) = declared.problems()
    assert problem.code == "slice-type"
    assert "feature 'tags' has a list of values in each row" in problem.message


@pytest.mark.parametrize(
    ("label", "code", "line"),
    [
        ({"column": "user"}, "label-rule", "column: user"),
        ({"column": "user", "greater_than": 1}, "label-rule", "greater_than: 1"),
        ({"column": "mobile", "less_than": 1}, "label-rule", "less_than: 1"),
        ({"column": "tags", "positive": "a"}, "label-type", "column: tags"),
        ({"column": "at"}, "label-rule", "column: at"),
        ({"column": "user", "positive": 1}, "positive-type", "positive: 1"),
        ({"column": "user", "positive": []}, "label-rule", "positive: []"),
        ({"column": "clicked", "positive": "1"}, "positive-type", "positive: '1'"),
        ({"column": "clicked", "positive": True}, "positive-type", "positive: true"),
        ({"column": "mobile", "positive": 1}, "positive-type", "positive: 1"),
        ({"column": "price", "positive": [1.5, "x"]}, "positive-type", "- x"),
        ({"column": "price", "positive": 1, "negative": "x"}, "negative-type", "negative: x"),
        ({"column": "clicked", "positive": 1, "negative": []}, "label-rule", "negative: []"),
        ({"column": "clicked", "positive": [1, 2], "negative": [0, 2]}, "label-rule", "- 2"),
    ],
)
def test_label_rules_that_do_not_fit(
    declared: Declared, label: dict[str, Any], code: str, line: str
) -> None:
    declared.dataset["label"] = label
    declared.dataset["features"] = {"event": HASH}
    assert declared.only()[0::2] == (code, line)


@pytest.mark.parametrize(
    "label",
    [
        {"column": "clicked"},
        {"column": "mobile"},
        {"column": "mobile", "positive": False},
        {"column": "price", "less_than": 0.5},
        {"column": "price", "positive": 1},
        {"column": "clicked", "positive": [1, 2]},
        {"column": "clicked", "positive": [1, 2], "negative": 0},
        {"column": "user", "positive": ["yes", "no"]},
        {"column": "at", "greater_than": 0},
    ],
)
def test_label_rules_that_fit(declared: Declared, label: dict[str, Any]) -> None:
    declared.dataset["label"] = label
    declared.dataset["features"] = {"event": HASH}
    assert declared.problems() == []


def test_an_unquoted_no_for_a_text_column(declared: Declared) -> None:
    declared.dataset["label"] = {"column": "user", "positive": "NO"}
    declared.dataset["features"] = {"event": HASH}
    declared.problems()
    file = declared.config / "pipelines/ads.yaml"
    file.write_text(file.read_text().replace("'NO'", "NO"))
    problems = load_project(declared.config, {}).problems
    assert [(p.code, p.hint) for p in problems] == [("positive-type", '"NO"')]
    assert "quote it" in problems[0].message


def test_event_time(declared: Declared) -> None:
    for name in ("att", "user"):
        declared.sources["history"]["event_time"] = name
        assert declared.only() == ("event-time", "at", f"event_time: {name}")
    del declared.sources["history"]["event_time"]
    assert declared.only() == ("event-time", "event_time: at", "kind: parquet")


SEVERAL = {**COLUMNS, "seen": "timestamp"}
NONE = {name: kind for name, kind in COLUMNS.items() if kind != "timestamp"}


def test_of_several_timestamps_or_none_none_is_guessed(declared: Declared) -> None:
    for columns in (SEVERAL, NONE):
        declared.sources["history"] |= {"columns": columns, "event_time": "user"}
        assert declared.only() == ("event-time", "", "event_time: user")
        del declared.sources["history"]["event_time"]
        assert declared.only() == ("event-time", "", "kind: parquet")


def test_event_time_is_not_needed_where_paths_say_the_time(declared: Declared) -> None:
    del declared.sources["history"]["event_time"]
    declared.sources["history"]["options"]["window_path"] = "date={date}/*"
    assert declared.problems() == []
    del declared.sources["history"]["options"]
    assert declared.only() == ("missing-key", "", "kind: parquet")


def test_a_stream_of_both_kinds_says_its_feed(declared: Declared) -> None:
    declared.dataset["streams"] = {"all": {"sources": ["history", "clicks"]}}
    declared.pipeline["train"] = {"paradigm": "batch"}
    assert declared.only() == ("feed", "", "sources:")
    declared.dataset["streams"]["all"]["feed"] = "batch"
    assert declared.problems() == []


@pytest.mark.parametrize(
    ("paradigm", "stream", "problem"),
    [
        *(("batch", "old", False), ("batch", "new", True), ("stream", "new", False)),
        *(("stream", "old", True), ("mixed", "old", False), ("mixed", "new", False)),
        *(("mixture", "old", True), ("mixture", "new", True), ("batch_then_stream", "old", True)),
    ],
)
def test_paradigms_need_their_feeds(
    declared: Declared, paradigm: str, stream: str, problem: bool
) -> None:
    declared.pipeline["train"] = {"paradigm": paradigm}
    declared.dataset["streams"] = {stream: declared.dataset["streams"][stream]}
    if problem:
        lacks, has = ("stream", "batch") if stream == "old" else ("batch", "stream")
        assert declared.only() == ("paradigm-feed", "", f"paradigm: {paradigm}")
        says = f"feeds {lacks}, but there is none; add one, or choose {has} or mixed"
        assert declared.message().endswith(says)
    else:
        assert declared.problems() == []
    declared.pipeline["model"] = {"kind": "count"}
    assert declared.problems() == []


def test_strict_priority_and_an_unused_zone_are_notes(declared: Declared) -> None:
    declared.dataset["streams"]["old"]["weight"] = 1.99
    assert declared.problems() == []
    declared.dataset["streams"]["old"]["weight"] = 2
    assert declared.only() == ("strict-priority", "", "weight: 2")
    assert [p.severity for p in declared.problems()] == ["note"]
    assert list(load_project(declared.config, {}).pipelines) == ["ads"]
    declared.dataset["streams"]["old"]["weight"] = 1
    declared.dataset |= {"window": "1h", "timezone": "Asia/Tokyo"}
    assert [(p.code, p.severity) for p in declared.problems()] == [("timezone-unused", "note")]


def test_a_trainer_with_less_memory_than_tensorflow_takes(declared: Declared) -> None:
    declared.pipeline["job"] = {"roles": {"trainer": {"memory": "256MiB"}}}
    assert declared.only()[0] == "memory"
    (problem,) = declared.problems()
    assert problem.severity == "note"
    assert problem.message.startswith("memory: 256 MiB will end the trainer: TensorFlow and")
    declared.pipeline["job"] = {"roles": {"trainer": {"memory": "1GiB"}}}
    assert declared.problems() == []


def test_a_model_that_few_machines_hold_is_a_note(declared: Declared) -> None:
    declared.dataset["features"]["user"] = {"encode": "hash", "buckets": 1_000_000, "dimension": 8}
    assert declared.problems() == []
    declared.dataset["features"]["user"]["buckets"] = 2**31 - 1
    (problem,) = declared.problems()
    assert (problem.code, problem.severity) == ("large-model", "note")
    assert "feature 'user' has 2,147,483,647 buckets of dimension 8" in problem.message
    assert "GiB of a model that takes" in problem.message


def test_floors_stay_below_one(declared: Declared) -> None:
    declared.dataset["streams"]["old"]["floor"] = 0.5
    declared.dataset["streams"]["new"]["floor"] = 0.49
    assert declared.problems() == []
    declared.dataset["streams"]["new"]["floor"] = 0.5
    assert declared.only() == ("floors", "", "floor: 0.5")


def test_dates_that_leave_nothing(declared: Declared) -> None:
    declared.pipeline["train"] = {"warm_start": "2026-03-01"}
    assert declared.only() == ("warm-start", "", "warm_start: '2026-03-01'")
    declared.pipeline["train"] = {"warm_start": "2026-02-28"}
    assert declared.problems() == []
    declared.dataset["end"] = "2026-03-01"
    assert declared.only() == ("empty-range", "", "end: '2026-03-01'")
    del declared.dataset["end"]
    declared.sources["history"] |= {"starts": "2026-01-02", "ends": "2026-01-02"}
    assert declared.only() == ("empty-range", "", "ends: '2026-01-02'")


def test_sources_unknown_or_twice(declared: Declared) -> None:
    declared.dataset["streams"]["new"]["sources"] = ["clicks", "history"]
    assert declared.only() == ("source-twice", "", "- history")
    assert "with the offset of stream 'old' (0s): each row would" in declared.problems()[0].message
    declared.dataset["streams"]["new"]["sources"] = ["klicks"]
    assert declared.only() == ("unknown-source", "clicks", "- klicks")
    assert declared.problems()[0].message.endswith("Declared sources: clicks, history")


def test_a_bad_source_hides_what_depends_on_it_alone(declared: Declared) -> None:
    declared.sources["history"]["colums"] = declared.sources["history"].pop("columns")
    declared.dataset["features"]["nothing"] = {"encode": "hash", "buckets": 9}
    slip, missing = declared.problems()
    assert (slip.code, missing.code) == ("unknown-key", "unknown-column")
    assert missing.message.endswith("column 'nothing' is not declared in source clicks")
    del declared.dataset["streams"]["new"]
    assert declared.only()[0] == "unknown-key", "a bad source alone hides its columns"


def codes(declared: Declared) -> list[tuple[str, str]]:
    return sorted((problem.code, problem.hint) for problem in declared.problems())


def test_unknown_names_are_found_together_with_all_other_slips(declared: Declared) -> None:
    dataset = declared.dataset
    dataset["streams"]["old"]["sources"] = ["histroy"]
    dataset["event_id"] = "evnt"
    dataset["label"]["column"] = "clikced"
    dataset["features"] |= {
        "usr": HASH,
        "price": HASH,
        "bad": HASH | {"buckets": -9},
        "both": {"encode": "cross", "columns": ["user", "mobil"], "buckets": 9},
    }
    declared.pipeline["train"] = {"paradigm": "mixtur"}
    unknown = [("unknown-column", name) for name in ("clicked", "event", "mobile", "user")]
    assert codes(declared) == [
        *(("encode-type", ""), *unknown, ("unknown-source", "history")),
        *(("wrong-value", ""), ("wrong-value", "mixture")),
    ]


def test_contradictions_are_found_together_with_misspelled_keys(declared: Declared) -> None:
    declared.dataset["lable"] = declared.dataset.pop("label")
    declared.dataset["end"] = "2026-03-01"
    declared.sources["history"] |= {"strts": "2026-01-02", "ends": "2026-01-02"}
    assert codes(declared) == [("empty-range", "")] * 2 + [
        *(("unknown-key", "label"), ("unknown-key", "starts"))
    ]
    project = load_project(declared.config, {})
    assert (project.sources.keys(), project.pipelines.keys()) == ({"clicks"}, set())


def test_sources_below_a_misspelled_key_are_looked_at(declared: Declared) -> None:
    declared.dataset["streams"]["new"] = {"sourcs": ["clikcs"]}
    assert {("unknown-key", "sources"), ("unknown-source", "clicks")} <= set(codes(declared))


def test_a_key_that_nobody_can_guess_contradicts_nothing(declared: Declared) -> None:
    declared.sources["history"]["zzzzzz"] = declared.sources["history"].pop("event_time")
    assert codes(declared) == [("unknown-key", "")]


def test_a_part_with_a_slip_has_no_second_one(declared: Declared) -> None:
    declared.dataset["features"]["f"] = {"encode": "hash", "buckets": 9, "zzzzzz": "user"}
    declared.dataset["label"] = {"columm": 5}
    declared.dataset["event_id"] = ["event", 5]
    declared.dataset["streams"]["old"]["sources"] = "history"
    declared.dataset["streams"]["new"] = ["clicks"]
    wanted = ["unknown-key"] * 2 + ["wrong-type"] * 4
    assert [code for code, _ in codes(declared)] == wanted


@pytest.mark.parametrize("dataset", [None, 5, {"streams": None, "features": []}])
def test_a_dataset_that_is_none_refers_to_nothing(declared: Declared, dataset: Any) -> None:
    declared.pipeline["dataset"] = dataset
    assert not {code for code, _ in codes(declared)} & {"unknown-source", "unknown-column"}


def test_several_labels_of_a_file_with_a_slip(declared: Declared) -> None:
    del declared.dataset["label"]
    declared.dataset["named_labels"] = {"click": {"column": "clicked"}, "buy": {"column": "bougt"}}
    declared.pipeline["train"] = {"paradigm": "mixtur"}
    assert codes(declared) == [("unknown-column", ""), ("wrong-value", "mixture")]


@pytest.mark.parametrize(("stream", "paradigm"), [("old", "batch"), ("new", "stream")])
def test_without_a_paradigm_the_one_feed_is_meant(
    declared: Declared, stream: str, paradigm: str
) -> None:
    declared.dataset["streams"] = {stream: declared.dataset["streams"][stream]}
    assert declared.problems() == []
    project = load_project(declared.config, {})
    assert project.pipeline("ads").train.paradigms == [paradigm]
    assert there(project.declared("ads")).pipeline["train"] == {"paradigm": paradigm}, (
        "as jobs read"
    )
    assert load_one(declared.config, "ads", {}).pipeline("ads") == project.pipeline("ads")
    declared.pipeline["train"] = {"minibatch_rows": 64, "compare": ["mixed"]}
    assert declared.problems() == []
    train = load_project(declared.config, {}).pipeline("ads").train
    assert (train.paradigms, train.minibatch_rows) == ([paradigm, "mixed"], 64)


def test_a_default_paradigm_never_hides_what_is_written(declared: Declared) -> None:
    assert declared.problems() == []
    assert load_project(declared.config, {}).pipeline("ads").train.paradigms == ["mixture"]
    del declared.dataset["streams"]["new"]
    declared.pipeline["train"] = {"compare": ["batch"]}  # of what, if not of a mixture?
    assert "needs a stream that feeds stream" in declared.message()
    declared.pipeline["train"] = {"delay": "head"}
    assert "paradigm 'batch' trains on none here" in declared.message()


def test_a_password_in_plain_text_is_noted_at_its_place(declared: Declared) -> None:
    declared.sources["clicks"]["options"]["client"] = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ann",
        "sasl_plain_password": "planted",
    }
    assert declared.only() == ("plain-secret", "", "sasl_plain_password: planted")
    (problem,) = declared.problems()
    assert problem.severity == "note"
    assert "write ${SASL_PLAIN_PASSWORD}" in problem.message
    assert "planted" not in problem.message


def test_a_timestamp_needs_a_part_and_a_cross_takes_none() -> None:
    hashed = HashFeature(encode="hash", buckets=9)
    cross = CrossFeature(encode="cross", columns=["at", "user"], buckets=9)
    kind = ColumnType.TIMESTAMP
    (alone,), (crossed,) = (list(feature_misfits(one, "at", kind)) for one in (hashed, cross))
    assert alone.message.endswith("give `part: hour` or `part: weekday`")
    assert crossed.message.endswith("a cross takes string, int and bool columns")


@pytest.mark.parametrize(
    ("positive", "kind", "message"),
    [
        (5, ColumnType.STRING, "5 is not a value of column 'c', which is string: quote it"),
        ("x", ColumnType.INT, "'x' is not a value of column 'c', which is int"),
        (True, ColumnType.INT, "bools in YAML: True is not a value of column 'c', which is int"),
    ],
)
def test_a_positive_value_of_another_type(positive: Any, kind: ColumnType, message: str) -> None:
    label = LabelSpec(column="c", positive=positive)
    (misfit,) = label_misfits(label, kind)
    assert misfit.message.endswith(message)
    assert misfit.message.startswith("unquoted yes") is isinstance(positive, bool)


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        *(("", ColumnType.STRING), (-(2**63), ColumnType.INT)),
        *((str(-(2**63)), ColumnType.LIST_INT), ("", ColumnType.LIST_STRING)),
    ],
)
def test_null_is_no_value_of_a_vocabulary(listed: str | int, kind: ColumnType) -> None:
    feature = VocabularyFeature(encode="vocabulary", values=["7", listed])
    (misfit,) = feature_misfits(feature, "c", kind)
    assert misfit.path == ("values", 1)
    assert misfit.message == f"value {listed!r} is null, and null has id 0 already: remove it"


@pytest.mark.parametrize(("value", "kind"), [("", ColumnType.STRING), (-(2**63), ColumnType.INT)])
@pytest.mark.parametrize("key", ["positive", "negative"])
def test_null_is_no_label(value: Any, kind: ColumnType, key: str) -> None:
    other = "x" if kind is ColumnType.STRING else 5
    label = LabelSpec.model_validate({"column": "c", "positive": other, key: [7, value]})
    misfits = [each for each in label_misfits(label, kind) if each.code == "label-null"]
    assert [each.path for each in misfits] == [(key, 1)]
    assert f"{value!r} is null, and a row whose label is null has none" in misfits[0].message


def test_what_a_window_reads_that_goes_on_now(declared: Declared) -> None:
    """History has to be over when it is opened, and something has to be followed."""
    declared.pipeline["job"] = {"process": "continuous"}
    streams = declared.dataset["streams"]
    streams["old"]["offset"], declared.dataset["window"] = "24h", "1d"
    assert declared.problems() == []
    streams["old"]["offset"] = "23h"
    assert declared.only() == ("continuous", "", "offset: 23h")
    assert "write offset: 1d or more" in declared.message()
    declared.dataset["window"] = "1h"
    assert declared.problems() == []
    streams["new"]["offset"] = "1h"
    assert declared.only() == ("continuous", "", "process: continuous")
    declared.pipeline["job"]["process"] = "standing"
    assert declared.problems() == []


def test_only_a_line_that_is_followed_and_publishes_exports_inside_its_windows(
    declared: Declared,
) -> None:
    publish = {"every": "10m"}
    declared.pipeline["job"] = {"process": "continuous", "publish": publish}
    declared.dataset["streams"]["old"]["offset"], declared.dataset["window"] = "24h", "1d"
    assert declared.problems() == []
    declared.pipeline["job"]["publish"] = {**publish, "when": "never"}
    assert declared.only() == ("continuous", "", "every: 10m")
    declared.pipeline["job"] = {"process": "standing", "publish": publish}
    assert "has windows that go on" in declared.message()
