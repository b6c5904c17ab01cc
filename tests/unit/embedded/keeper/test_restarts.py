"""How components are restarted."""

from __future__ import annotations

from forebay.embedded.keeper.component_group import COMPONENT_POLICY


def test_the_first_restart_comes_at_once_and_later_ones_wait_longer() -> None:
    delays = [COMPONENT_POLICY.decide(ends, 1).delay_seconds for ends in range(8)]
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]


def test_too_many_ends_are_the_end() -> None:
    assert COMPONENT_POLICY.decide(8, 1).action == "fail"


def test_every_end_is_answered_whatever_its_code() -> None:
    assert {COMPONENT_POLICY.decide(0, code).action for code in (0, 1, 3, -9, None)} == {"restart"}


def test_ends_of_ten_minutes_ago_are_forgotten() -> None:
    assert COMPONENT_POLICY.memory_seconds == 600.0
