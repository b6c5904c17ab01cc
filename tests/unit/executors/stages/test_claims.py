"""Claims: a tag keeps its generation, old ones go, a forgotten window has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.datatasks.ledger import Ledger
from forebay.errors import DataError
from forebay.executors.stages import claims as module
from forebay.executors.stages.claims import CLAIMS_MAX, Claims
from forebay.home.format import record_format
from forebay.home.paths import Home

WINDOW = "2026-03-01"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(Home(tmp_path), "ads")
    record_format(made.home)  # as the plan of the window did
    (made.folder / WINDOW).mkdir(parents=True)
    return made


def test_a_tag_keeps_its_generation(ledger: Ledger) -> None:
    claims = Claims(ledger, WINDOW)
    assert claims.generation("run#0") is None
    claims.record("run#0", 1)
    claims.record("run#1", 2)
    assert Claims(ledger, WINDOW).generation("run#0") == 1
    assert Claims(ledger, WINDOW).generation("run#1") == 2
    assert Claims(ledger, "2026-03-02").generation("run#0") is None


def test_the_oldest_claims_go(ledger: Ledger) -> None:
    claims = Claims(ledger, WINDOW)
    for number in range(CLAIMS_MAX + 3):
        claims.record(f"run#{number}", number)
    assert claims.generation("run#2") is None
    assert claims.generation("run#3") == 3
    assert claims.generation(f"run#{CLAIMS_MAX + 2}") == CLAIMS_MAX + 2


def test_a_forgotten_window_has_no_claims_and_claims_make_no_window(ledger: Ledger) -> None:
    claims = Claims(ledger, WINDOW)
    claims.record("run#0", 1)
    assert ledger.windows() == []
    assert ledger.forget(WINDOW)
    assert claims.generation("run#0") is None


def test_damage_is_named(ledger: Ledger) -> None:
    path = ledger.folder / WINDOW / module.CLAIMS_NAME
    path.write_text('{"claims": {"run#0": "one"}}')
    with pytest.raises(DataError, match=r"is damaged: .*move it away"):
        Claims(ledger, WINDOW).generation("run#0")
