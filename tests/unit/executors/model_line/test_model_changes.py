"""Which declarations make another model, and what a refusal names of what differs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.model_lines import record_link
from support.stages import memory_source, pipeline

from forebay.config.explain import declared_columns
from forebay.config.specs.pipelines import PipelineSpec
from forebay.errors import ConfigError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.model_line.start import require_compatible
from forebay.home.paths import Home
from forebay.home.store.open import store_of
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.models.identity import IDENTITY, ModelIdentity

SOURCES = {"a": memory_source("a")}
FEATURES: dict[str, Any] = {"n": {"encode": "hash", "buckets": 10, "dimension": 4}}


def spec(features: dict[str, Any] = FEATURES, label: str = "n", **more: Any) -> PipelineSpec:
    return pipeline(("a",), dataset={"features": features, "label": {"column": label}}, **more)


def read_by(streams: dict[str, list[str]]) -> PipelineSpec:
    """A pipeline whose streams have one day of offset after another."""
    declared = {
        name: {"sources": sources, "offset": f"{number}d"}
        for number, (name, sources) in enumerate(streams.items())
    }
    dataset = {"features": FEATURES, "label": {"column": "n"}, "streams": declared}
    return pipeline((), dataset=dataset)


def trained(root: Path, meant: PipelineSpec, *, kept: bool = True) -> ModelChain:
    """A line of one window, whose checkpoint is of this pipeline."""
    chain, folder = ModelChain(Home(root / "home"), "ads"), root / "checkpoint"
    layout = FeatureLayout.of(meant.dataset, declared_columns(meant, SOURCES))
    (folder / "model").mkdir(parents=True)
    labels, uses = meant.dataset.targets, len(meant.uses)
    identity = ModelIdentity.of(layout, meant.model, meant.train, uses, labels)
    (folder / "model" / IDENTITY).write_text(identity.model_dump_json())
    files = {"checkpoint": store_of(chain.home).put_tree("models/ads/main/w", "g1", folder)}
    fingerprint = model_fingerprint_of(meant, SOURCES)
    record_link(
        chain,
        "2026-03-01",
        dict.fromkeys(meant.use_names, 1),
        model_fingerprint=fingerprint,
        files=files if kept else {},
    )
    return chain


def refusal(chain: ModelChain, now: PipelineSpec) -> str:
    with pytest.raises(ConfigError, match="changed since window 2026-03-01") as refused:
        require_compatible(chain, now, SOURCES)
    return str(refused.value)


@pytest.mark.guarantee(
    "features or towers are changed",
    "red, with each difference; no model is silently started again",
)
@pytest.mark.parametrize(
    ("now", "says"),
    [
        (
            spec({"n": {"encode": "hash", "buckets": 11, "dimension": 4}}),
            "feature n: buckets 10 there, 11 here",
        ),
        (spec(FEATURES | {"at": {"encode": "numeric", "part": "hour"}}), "feature at not there"),
        (spec(train={"compare": ["mixed"]}), "paradigms .* there, .* here"),
        (spec(model={"tower": {"hidden": [9]}}), "tower .* there, .9. here"),
        (spec(label="at"), "the label, or an option of model.mixture"),
    ],
)
def test_each_difference_is_named(now: PipelineSpec, says: str, tmp_path: Path) -> None:
    found = refusal(trained(tmp_path, spec()), now)
    assert "separate embeddings" not in found
    assert re.search(f": {says}", found), found


def test_without_a_checkpoint_the_refusal_stays_short(tmp_path: Path) -> None:
    changed = spec(model={"tower": {"hidden": [9]}})
    assert "there" not in refusal(trained(tmp_path, spec(), kept=False), changed)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    ("streams", "there", "here"),
    [
        ({"all": ["a"]}, {"all": ["a"], "old": ["a"]}, "a there, a@all, a@old here"),
        ({"all": ["a"], "old": ["a"]}, {"all": ["a"]}, "a@all, a@old there, a here"),
        (
            {"all": ["a"], "old": ["a"]},
            {"old": ["a"], "all": ["a"]},
            "a@all, a@old there, a@old, a@all here",
        ),
    ],
)
def test_sources_that_other_streams_read_now_are_named(
    streams: dict[str, list[str]],
    there: dict[str, list[str]],
    here: str,
    tmp_path: Path,
    *,
    kept: bool,
) -> None:
    """With a checkpoint or without one, and nothing else is said."""
    before, now = (read_by(each) for each in (streams, there))
    assert f": sources {here}. Train" in refusal(trained(tmp_path, before, kept=kept), now)


LABELS: dict[str, dict[str, Any]] = {
    "click": {"column": "n", "delay": "none"},
    "sale": {"column": "n", "greater_than": 1},
}


def fingerprint(**labels: Any) -> str:
    features = {"n": {"encode": "hash", "buckets": 10}}
    dataset = {"streams": {"all": {"sources": ["a"]}}, "features": features, "label": None}
    train = {"paradigm": "mixture", "delay": "head"}
    return model_fingerprint_of(pipeline((), dataset=dataset | labels, train=train), SOURCES)


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
