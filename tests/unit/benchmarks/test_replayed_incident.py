"""An incident of six hours, replayed with a real learner, and the day after it."""

from __future__ import annotations

from market_replay import HISTORY_HOURS, replay_market
from replay import Span

from examples.demo.data.ad_market import Market, Outage, generate


def test_what_the_guard_held_is_no_late_label_a_day_after() -> None:
    """Else whoever learns late positives learns six hours of them, and the negatives of none."""
    outage = Outage(82, 6)
    market = Market(outages=(outage,))
    generated = generate(market, 1, days=5, hourly=600)
    train = {"paradigm": "mixture", "delay": "fnw", "guard": True}
    end = outage.first + 32
    span = Span(end, 48, outage.first + 24, HISTORY_HOURS)
    found = replay_market(market, generated, train, {"seed": 1}, span=span)
    ((name, since, until),) = found.pauses
    assert name == "mixture+fnw"
    assert outage.first < since < outage.first + 2 < until < outage.first + 8
    # 1.8 where copies that were held count as late labels; what stands still expects 1.06.
    assert found.scores[:, 0].sum() / found.converted.sum() < 1.3
