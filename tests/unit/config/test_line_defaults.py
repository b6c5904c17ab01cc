"""Defaults by version: a value that is written out counts in all of them."""

from __future__ import annotations

from typing import Any

from support.stages import pipeline

from forebay.config.line_defaults import FIRST, NEWEST, earlier_defaults, filled, with_defaults
from forebay.config.models import MixtureSpec
from forebay.config.pipelines import PipelineSpec


def spec(**more: Any) -> PipelineSpec:
    return pipeline(("a",), **more)


def test_the_newest_defaults_are_those_of_the_models() -> None:
    assert with_defaults(spec(), NEWEST) == spec()
    assert earlier_defaults(spec(), NEWEST) == {}


def test_the_first_defaults_are_algorithm_1_without_a_guard() -> None:
    first = with_defaults(spec(description="d", train={"warm_start": "2026-02-01"}), FIRST)
    assert first.model.mixture == MixtureSpec(mode="paper")
    assert not first.train.guard
    assert (first.name, first.description) == (spec().name, "d")
    assert first.train.warm_start is not None
    assert earlier_defaults(spec(), FIRST) == {
        "model.mixture.mode": "paper",
        "model.mixture.embeddings": "shared",
        "model.mixture.memory_inputs": "random",
        "model.mixture.adapt_learns": "stream",
        "train.guard": False,
    }


def test_what_is_written_stays() -> None:
    mixture = {"embeddings": "separate", "gain": 0.7}
    written = spec(model={"mixture": mixture}, train={"guard": True})
    first = with_defaults(written, FIRST)
    assert first.model.mixture.embeddings == "separate"
    assert first.model.mixture.gain == 0.7
    assert first.train.guard
    assert earlier_defaults(written, FIRST) == {
        "model.mixture.mode": "paper",
        "model.mixture.memory_inputs": "random",
        "model.mixture.adapt_learns": "stream",
    }


def test_a_declaration_as_it_is_written_is_filled_in_place() -> None:
    assert filled({"model": {"seed": 3}, "train": None}, FIRST) == {
        "model": {"seed": 3, "mixture": {"mode": "paper"}},
        "train": {"guard": False},
    }
    assert filled({"model": {"seed": 3}}, NEWEST) == {"model": {"seed": 3}}
