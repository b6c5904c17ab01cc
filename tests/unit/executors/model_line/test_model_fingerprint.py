"""Which changes of labels make another model; a single label keeps its old fingerprint."""

from __future__ import annotations

from typing import Any

import pytest
from support.stages import memory_source

from forebay.config.specs.pipelines import PipelineSpec
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of

SOURCES = {"a": memory_source("a")}
LABELS: dict[str, dict[str, Any]] = {
    "click": {"column": "n", "delay": "none"},
    "sale": {"column": "n", "greater_than": 1},
}


def fingerprint(**labels: Any) -> str:
    spec = PipelineSpec.model_validate(
        {
            "name": "ads",
            "dataset": {
                "start": "2026-03-01",
                "event_id": "n",
                "streams": {"all": {"sources": ["a"]}},
                "features": {"n": {"encode": "hash", "buckets": 10}},
                **labels,
            },
            "train": {"paradigm": "mixture", "delay": "head"},
        }
    )
    return model_fingerprint_of(spec, SOURCES)


def several(name: str, **changes: Any) -> str:
    return fingerprint(
        named_labels={**LABELS, name: {**LABELS.get(name, {"column": "n"}), **changes}}
    )


def test_one_label_has_the_fingerprint_that_its_lines_have() -> None:
    assert fingerprint(label={"column": "n"}) == "e4cf269cc5b69784"


@pytest.mark.parametrize("name", ["click", "sale"])
@pytest.mark.parametrize(
    "changes", [{"weight": 3}, {"label_join": "9h"}, {"known_at": "at"}, {"negative": 7}]
)
def test_what_may_change_from_one_window_to_the_next(name: str, changes: dict[str, Any]) -> None:
    assert several(name, **changes) == several(name)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("click", {"delay": "head"}),
        ("sale", {"delay": "none"}),
        ("sale", {"greater_than": 2}),
        ("visit", {}),
    ],
)
def test_what_makes_another_model(name: str, changes: dict[str, Any]) -> None:
    assert several(name, **changes) != fingerprint(named_labels=LABELS)


def test_the_order_of_labels_is_that_of_outputs() -> None:
    turned = dict(reversed(LABELS.items()))
    assert fingerprint(named_labels=turned) != fingerprint(named_labels=LABELS)
