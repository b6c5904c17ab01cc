"""The generated ad market: the same seed makes the same rows, and labels come when they should."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from examples.demo.data.ad_market import (
    HORIZON,
    MARKETS,
    MEAN_DELAYS,
    START,
    Events,
    Market,
    generate,
)
from examples.demo.data.ad_tastes import CATEGORIES, ITEMS, USERS

LATE = MARKETS["late conversions"]
HOUR_US = 3_600_000_000
START_US = int(START.timestamp() * 1e6)


@pytest.fixture(scope="module")
def late() -> Events:
    return generate(LATE, 1)


def small(market: Market, seed: int = 1) -> Events:
    return generate(market, seed, days=8, hourly=100)


@pytest.mark.parametrize("name", MARKETS)
def test_the_same_seed_makes_the_same_rows_and_another_does_not(name: str) -> None:
    market = MARKETS[name]
    first, again, other = small(market), small(market), small(market, 2)
    assert (first.history(), first.stream()) == (again.history(), again.stream())
    assert first.history() != other.history()


def test_markets_of_one_seed_differ_only_by_what_they_declare() -> None:
    """Only the log differs between these two: nobody was shown anything else."""
    plain, sparse = small(MARKETS["drift"]), small(MARKETS["sparse stream"])
    assert plain.history() == sparse.history()
    assert sparse.streamed.mean() == pytest.approx(0.15, abs=0.01)
    late = small(LATE)
    assert (late.at == plain.at).all()
    assert not late.converted[~plain.converted].any()


def test_traffic_has_a_daily_wave_of_factor_four(late: Events) -> None:
    hours = np.bincount((late.at - START_US) // HOUR_US % 24) / 12
    assert late.at.min() >= START_US
    assert (np.diff(late.at) >= 0).all()
    assert hours.mean() == pytest.approx(2_000, rel=0.02)
    assert hours.max() / hours.min() == pytest.approx(4.0, rel=0.1)


def test_delays_of_conversions_are_those_of_their_category(late: Events) -> None:
    delays = (late.known_at - late.at)[late.converted] / HOUR_US
    category = late.features["category"][late.converted]
    assert delays.max() <= HORIZON.total_seconds() / 3600
    means = np.array([delays[category == each].mean() for each in range(CATEGORIES)])
    # What takes more than a day is none: the mean of the slowest shrinks, to 7.8 hours.
    slowest = 12 - 24 / np.expm1(24 / 12)
    expected = np.array([*MEAN_DELAYS[:3], slowest])
    assert np.abs(np.log(means[:, None] / expected)).min(axis=1).max() < 0.2
    assert {int(np.abs(np.log(mean / expected)).argmin()) for mean in means} == {0, 1, 2, 3}


def test_history_is_complete_after_a_day_and_the_stream_after_its_wait(late: Events) -> None:
    known = late.converted & (late.known_at <= late.at + LATE.wait // HORIZON.resolution)
    assert (late.known == known).all()
    history, stream = late.history(), late.stream()
    age = pc.subtract(history["known_at"], history["at"])
    assert max(pc.unique(age).to_pylist()) == HORIZON
    waits = pc.subtract(stream["published"], stream["at"])
    assert pc.unique(waits).to_pylist() == [LATE.wait]
    published = stream["published"].cast(pa.int64()).to_numpy()
    assert (np.diff(published) >= 0).all()
    assert stream.num_rows == history.num_rows == len(late.at)
    share = pc.sum(stream["converted"]).as_py() / pc.sum(history["converted"]).as_py()
    assert share == pytest.approx(late.share_known)
    for events in (late, generate(LATE, 2, days=3)):
        assert 0.31 <= events.share_known <= 0.58
        assert 0.08 <= events.converted.mean() <= 0.16


def test_an_outage_hides_conversions_and_nothing_else() -> None:
    events = generate(MARKETS["incident"], 1)
    plain = generate(MARKETS["drift"], 1)
    assert (events.converted == plain.converted).all()
    hour = (events.published - START_US) // HOUR_US
    hidden = np.isin(hour, [*range(178, 184), *range(234, 240)])
    assert events.known[~hidden].sum() == events.converted[~hidden].sum() > 0
    assert events.known[hidden].sum() == 0 < events.converted[hidden].sum()


def test_items_are_replaced_at_midnight_and_strangers_are_seen_once_where_a_market_says_so() -> (
    None
):
    events = small(MARKETS["collisions"])
    day = (events.at - START_US) // (24 * HOUR_US)
    new = events.features["item"] >= ITEMS
    assert not new[day == 0].any()
    assert 0 < new[day == 1].mean() < new[day == 7].mean()
    assert small(LATE).features["item"].max() < ITEMS
    assert events.features["user"].max() < USERS
    events = small(Market(returning=0.3))
    users = events.features["user"]
    new = users >= USERS
    assert new.mean() == pytest.approx(0.7, abs=0.02)
    assert len(np.unique(users[new])) == new.sum()
    assert (events.converted == small(Market()).converted).all()
