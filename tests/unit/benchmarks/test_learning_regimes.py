"""The table of advice made from the figures that the benchmark of learning writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from learning_page import page_text, with_block
from learning_regimes import table_of

from forebay.mixture.advice.regimes import RegimeTable, difference_of


def variant(auc: float, gains: tuple[float, ...] = (0.0, 0.0, 0.0)) -> dict[str, Any]:
    others = {"normalised_entropy": 0.9, "calibration": 1.01}
    return {"auc": auc, "difference": sum(gains) / len(gains), "by_seed": gains, **others}


def market(name: str, guarded: bool, variants: dict[str, Any]) -> dict[str, Any]:
    known = {"seeds": [1, 2, 3], "completeness": [0.4, 0.5]}
    return {"market": name, "guarded": guarded, **known, "variants": variants}


LATE = {
    "mixed": variant(0.76),
    "mixture+head": variant(0.77, (0.02, 0.01, 0.0)),
    "mixture+head/memory": variant(0.74),
}
FIGURES = {
    "date": "2026-11-23",
    "seeds": [1, 2, 3],
    "markets": [
        market("late conversions", False, LATE),
        market("incident", False, {"stream": variant(0.7)}),
        market("incident", True, {"stream": variant(0.79, (0.1, 0.1, 0.07))}),
        market("sparse stream", False, {"mixed": variant(0.75)}),
        market("collisions", False, {"mixed": variant(0.75)}),
    ],
}


def test_markets_are_regimes_with_what_is_known_of_them() -> None:
    table = table_of(FIGURES)
    facts = [(each.name, each.stream_share, each.crowded, each.seeds) for each in table.regimes]
    assert facts == [
        ("late conversions", 1.0, False, 3),
        ("incident", 1.0, False, 3),
        ("sparse stream", 0.15, False, 3),
        ("collisions", 1.0, True, 3),
    ]
    assert [each.completeness for each in table.regimes] == [0.45] * 4
    assert table.regimes[1].best.auc == 0.79  # the guarded run
    again = table.model_dump_json(exclude_defaults=True)
    assert RegimeTable.model_validate_json(again) == table


def test_differences_pair_seeds() -> None:
    mixed, mixture = table_of(FIGURES).regimes[0].variants
    mean, half = difference_of(mixture, mixed)
    assert (mean, half) == (pytest.approx(0.01), pytest.approx(4.3027 * 0.01 / 3**0.5))


def test_tables_mark_the_best_and_say_how_far_others_are() -> None:
    text = page_text(table_of(FIGURES))
    assert "### Late conversions\n\nConversions come 0.3 to 12 hours" in text
    assert "45% of positives known at publication; 3 seeds." in text
    assert "| **`mixture+head`** | 0.7700 |  | 1.01 |\n" in text
    assert "| `mixed` | 0.7600 | -0.0100 ± 0.0248 | 1.01 |\n" in text


def test_a_page_changes_between_its_markers_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<b>\nold\n<e>\nafter\n")
    assert with_block(page, ("<b>", "<e>"), "new") == "before\n<b>\nnew\n<e>\nafter\n"
    with pytest.raises(SystemExit, match="needs"):
        with_block(page, ("<b>", "<x>"), "new")
