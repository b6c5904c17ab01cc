"""What the evaluation stage returns of a window's figures."""

from __future__ import annotations

from forebay.executors.stages.evaluate import _by_name
from forebay.mixture.metrics.figures import EventScores


def test_only_single_numbers_are_figures() -> None:
    found = EventScores(auc=0.5, auc_interval=(0.4, 0.6), calibration=float("nan"), rows=3)
    wanted = {"auc": 0.5, "rows": 3.0, "positives": 0.0, "seeds": 1.0}
    assert _by_name({"mixture": found}) == {"mixture": wanted}
