"""Writes the table that advice is taken from, out of what `benchmarks/learning.py` has measured.

    python benchmarks/learning_regimes.py       # mixture/metrics/learning.json to the table

What a market is like comes from the market itself; of one that was run with and without the guard
the guarded runs count, since a pipeline has it unless it says otherwise.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from examples.demo.data.ad_market import MARKETS
from examples.demo.data.ad_tastes import USERS
from forebay.mixture.advice.regimes import TABLE, MeasuredVariant, Regime, RegimeTable

FIGURES = Path("mixture/metrics/learning.json")
COMMAND = "python benchmarks/learning.py"
# In which way the data of a market is special.
DATA = {
    "late conversions": "Conversions come 0.3 to 12 hours after their event on average, by "
    "category; the stream publishes an event after one hour",
    "incident": "The stream publishes no conversions for six hours, twice; the guard is on",
    "sparse stream": "15% of the events are in the stream",
    "drift": "Tastes are forgotten in 8 to 12 hours",
    "collisions": "Tastes are forgotten faster still, 5% of the items are replaced each day, and "
    "users and items share few ids",
    "complete": "Tastes are forgotten in four to six days",
    "short log": "The stream begins on the sixth day",
}


def table_of(found: dict[str, Any]) -> RegimeTable:
    """The table of summarised runs, see `learning_figures.summarised`."""
    guarded = {each["market"] for each in found["markets"] if each["guarded"]}
    return RegimeTable(
        measured=date.fromisoformat(found["date"]),
        origin="generated markets, every variant on the same rows, scored at the event's time",
        command=COMMAND,
        regimes=tuple(
            regime_of(each)
            for each in found["markets"]
            if each["guarded"] or each["market"] not in guarded
        ),
    )


def regime_of(found: dict[str, Any]) -> Regime:
    """One market as a regime."""
    market_name = found["market"]
    market = MARKETS[market_name]
    low, high = found["completeness"]
    return Regime(
        name=market_name,
        data=DATA[market_name],
        completeness=(low + high) / 2,
        stream_share=market.stream_share,
        crowded=market.user_buckets < USERS,
        seeds=len(found["seeds"]),
        variants=tuple(
            _variant(name, figures)
            for name, figures in sorted(found["variants"].items())
            if "/" not in name  # a tower that does not answer can not be declared
        ),
    )


def _variant(name: str, figures: dict[str, Any]) -> MeasuredVariant:
    """One variant. Its AUCs by seed are as far from each other as its gains over the baseline.

    Differences between variants of one seed are what they were.
    """
    baseline = figures["auc"] - figures["difference"]
    return MeasuredVariant(
        variant=name,
        auc=figures["auc"],
        auc_by_seed=tuple(baseline + gain for gain in figures["by_seed"]),
        normalised_entropy=figures["normalised_entropy"],
        calibration=figures["calibration"],
    )


def write_table(found: dict[str, Any]) -> None:
    """Put the table in the place of the one before."""
    TABLE.write_text(table_of(found).model_dump_json(indent=1, exclude_defaults=True) + "\n")


if __name__ == "__main__":
    write_table(json.loads(FIGURES.read_text()))
