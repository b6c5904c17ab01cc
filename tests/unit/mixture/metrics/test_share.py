"""Shares and their intervals."""

from __future__ import annotations

import numpy as np
from support.there import there

from forebay.mixture.metrics.share import Share


def found(parts: list[int], wholes: list[int]) -> Share:
    return there(Share.of(parts, wholes))


def test_the_interval_is_wilsons() -> None:
    """Newcombe 1998, table I: 81 of 263 is 0.2553 to 0.3662, 0 of 20 is 0 to 0.1611."""
    share = found([81], [263])
    assert (round(share.low, 4), round(share.high, 4)) == (0.2553, 0.3662)
    bounds = {"low": share.low, "high": share.high}
    assert share.as_json() == {"share": 81 / 263, **bounds, "part": 81, "whole": 263}
    none = found([0], [20])
    assert (none.low, round(none.high, 4)) == (0.0, 0.1611)


def test_nothing_has_no_share() -> None:
    assert Share.of([], []) is None
    assert Share.of([0, 0], [0, 0]) is None


def test_groups_that_differ_widen_the_interval_and_alike_ones_do_not() -> None:
    alone, alike = found([50], [100]), found([25, 25], [50, 50])
    apart = found([50, 0], [50, 50])
    assert (alike.low, alike.high) == (alone.low, alone.high)
    assert apart.high - apart.low > 2 * (alone.high - alone.low)


def test_groups_drawn_together_are_covered_as_often_as_it_says() -> None:
    """Groups whose share varies: the interval of rows drawn alone would hold half of the time."""
    random, held = np.random.default_rng(4), 0
    for _ in range(400):
        share = found(random.binomial(200, random.beta(6, 6, 12)).tolist(), [200] * 12)
        held += share.low <= 0.5 <= share.high
    assert held / 400 > 0.88


def test_words_never_round_up() -> None:
    assert found([899], [1000]).words.startswith("89% (")
    assert found([999_999], [1_000_000]).words == "99% (99%-99%) of 1,000,000"
