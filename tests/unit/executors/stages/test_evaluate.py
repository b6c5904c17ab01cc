"""What the evaluation stage returns of a window's figures."""

from __future__ import annotations

from forebay.executors.stages.evaluate import _by_name


def test_only_single_numbers_are_figures() -> None:
    found = {"auc": 0.5, "rows": 3, "loss": None, "lift": float("nan"), "interval": [0.4, 0.6]}
    assert _by_name({"mixture": found}) == {"mixture": {"auc": 0.5, "rows": 3.0}}
