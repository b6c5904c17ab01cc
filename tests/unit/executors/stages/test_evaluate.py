"""What the evaluation stage hands on of a window's figures, and where its line began."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.links import link
from support.model_lines import record

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.stages.evaluate import _figures, _warm_start
from forebay.home.paths import Home


def test_only_single_numbers_are_figures() -> None:
    found = {"auc": 0.5, "rows": 3, "loss": None, "lift": float("nan"), "interval": [0.4, 0.6]}
    assert _figures(found) == {"auc": 0.5, "rows": 3.0}


@pytest.mark.parametrize(
    ("parent", "kept", "found"),
    [
        (None, True, []),
        ("2026-03-01", True, []),
        ("2026-02-01_2026-03-02", True, ["2026-02-01_2026-03-02"]),
        ("2026-02-01_2026-03-02", False, []),
    ],
)
def test_the_warm_start_of_a_line_s_first_window(
    tmp_path: Path, parent: str | None, kept: bool, found: list[str]
) -> None:
    chain = ModelChain(Home(tmp_path), "ads")
    if parent and kept:
        record(chain, link(parent))
    first = link("2026-03-02", parent=(parent, 1) if parent else None)
    assert [each.window for each in _warm_start(chain, first)] == found
