"""Odd declarations, files and messages: read as other programs read them, or refused with a place.

Files are written in every form that is read, and broken in many ways; declarations have odd values,
and say something else than what is stored. No command may print a traceback, or blame the machine
(exit code 4) for what a person wrote.
"""

from __future__ import annotations

import pytest
from support.python_code import require_green

# Again with the seed that it prints: `python -m support.odd_inputs --seed S --only N`.
ODD_INPUTS = "support.odd_inputs"


@pytest.mark.timeout(600)
def test_odd_inputs_are_read_as_others_read_them_or_refused() -> None:
    """Always the same; `make chaos` draws others."""
    require_green(ODD_INPUTS, "--examples", "105", "--minutes", "5", seed=7106)


@pytest.mark.chaos
@pytest.mark.timeout(1500)
def test_many_odd_inputs() -> None:
    require_green(ODD_INPUTS, "--examples", "5000", "--minutes", "9")
