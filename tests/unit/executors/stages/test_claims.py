"""Claims: one keeps its generation, old ones are removed, a forgotten window has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.model_lines import plan_empty

from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import DataError
from forebay.executors.stages.claims import CLAIMS_MAX, Claims
from forebay.home.paths import Home

WINDOW = "2026-03-01"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(Home(tmp_path), "ads")
    plan_empty(made, WINDOW)
    return made


def test_what_is_trained_is_made_anew_once(ledger: Ledger) -> None:
    claims = Claims(ledger, WINDOW)
    assert claims.decide("run#0", renewed=None) == 1
    assert Claims(ledger, "2026-03-02").generation("run#0") is None
    assert claims.decide("run#1", renewed=1) == 2
    assert claims.decide("run#1", renewed=1) == 2
    assert ledger.generations(WINDOW) == [1, 2]
    assert ledger.plan(WINDOW, 2) == ledger.plan(WINDOW, 1).model_copy(update={"generation": 2})
    assert claims.decide("run#2", renewed=1) == 2, "somebody else has made it anew already"
    assert [entry["generation"] for entry in ledger.history(WINDOW)] == [1, 2]
    assert claims.decide("run#0", renewed=None) == 1, "as its first call was told"


def test_the_oldest_claims_go(ledger: Ledger) -> None:
    claims = Claims(ledger, WINDOW)
    for number in range(CLAIMS_MAX + 3):
        claims.decide(f"run#{number}", renewed=None)
    assert claims.generation("run#2") is None
    assert claims.generation("run#3") == 1
    assert claims.generation(f"run#{CLAIMS_MAX + 2}") == 1


def test_a_forgotten_window_has_no_claims(ledger: Ledger) -> None:
    claims = Claims(ledger, WINDOW)
    claims.decide("run#0", renewed=None)
    assert ledger.forget(WINDOW)
    assert claims.generation("run#0") is None
    with pytest.raises(DataError, match="has no plan"):
        claims.decide("run#0", renewed=None)
