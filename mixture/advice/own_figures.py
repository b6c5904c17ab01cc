"""Advice from what a line has measured itself: it goes before what other data has shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from forebay.mixture.advice.recommendation import Gain, Recommendation
from forebay.mixture.metrics.estimate import Estimate


def with_own_figures(
    declared: str, measured: Mapping[str, Estimate], elsewhere: Recommendation | None
) -> Recommendation | None:
    """The best variant that is clearly better here; otherwise what regimes say and nothing denies.

    measured: AUC of each other variant that was trained beside the declared one, minus its AUC.
    elsewhere: what measured regimes recommend; an interval that contains their gain denies nothing.
    """
    better = {name: one for name, one in measured.items() if one.value > 0 and one.is_clear()}
    if better:
        best = max(better, key=lambda name: better[name].value)
        gains = (_gain(better[best]),)
        return Recommendation(
            changes=True, variant=best, options={}, declared=declared, gains=gains, measured=""
        )
    own = None if elsewhere is None or elsewhere.options else measured.get(elsewhere.variant)
    if elsewhere is None or own is None or any(_fits(each, own) for each in elsewhere.gains):
        return elsewhere
    return replace(elsewhere, changes=False, variant=declared, gains=(_gain(own),), measured="")


def _fits(elsewhere: Gain, own: Estimate) -> bool:
    return elsewhere.auc is None or own.low <= elsewhere.auc <= own.high


def _gain(own: Estimate) -> Gain:
    return Gain(None, own.seeds, own.value, (own.high - own.low) / 2)
