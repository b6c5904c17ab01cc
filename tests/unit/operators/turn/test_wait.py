"""How the wait for a turn becomes longer."""

from __future__ import annotations

from forebay.operators.turn.wait import CHANGED, TurnWait


def test_looks_become_rare_and_soon_again_after_a_change() -> None:
    wait = TurnWait(deadline=1e9)
    sleeps = []
    for _ in range(5):
        sleeps.append(wait.next_look)
        wait = wait.longer(blocked=False)
    assert sleeps == [60, 120, 240, 300, 300]
    assert wait.woken({"state": "look"}) is wait
    assert wait.woken({"state": CHANGED}).next_look == 15
    assert wait.woken({"state": CHANGED}).deadline == 1e9


def test_looks_that_found_no_way_out_count_on_end() -> None:
    wait = TurnWait(deadline=1e9)
    counts = []
    for blocked in (True, True, False, True):
        wait = wait.longer(blocked=blocked)
        counts.append(wait.blocked_looks)
    assert (counts, wait.woken({"state": CHANGED}).blocked_looks) == ([1, 2, 0, 1], 1)
