"""A generated ad market: who was shown what, when, and how much later they bought it, if at all.

Nothing in it is real. The popularity of users and items follows Zipf's law, and they have tastes
that a model has to learn. Categories and items drift, so that a model that is not updated becomes
outdated. A conversion is known some time after its event; how long depends on the category. The
stream publishes each event with what is known by then, and the history contains it a day later with
its complete label. The same seed gives the same rows, and markets with the same seed differ only in
their `Market`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from examples.demo.data.ad_tastes import CATEGORIES, USERS, Tastes, distinct_randoms

START = datetime(2026, 3, 1, tzinfo=UTC)
HORIZON = timedelta(hours=24)
MEAN_DELAYS = (0.3, 1.0, 4.0, 12.0)
# The busiest hour has (1 + 0.6) / (1 - 0.6) = 4 times the traffic of the quietest.
_WAVE = 0.6
_HOUR_US = 3_600_000_000
_POSITIONS = 5

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Outage:
    """Hours in which the stream publishes no conversions: `hours` of them, starting at `first`."""

    first: int
    hours: int


@dataclass(frozen=True)
class Market:
    """Parameters of one market.

    wait: from an event to its publication. mean_delays: of conversions, in hours; each category
    has one of them, and without any no label is late. horizon: later conversions do not count, so
    that the history's labels are complete when it is read. base_logit: how rare conversions are.
    stream_share: the share of events that is published.
    returning: the share of events whose user is seen again.
    *_drift: how far a logit wanders (its standard deviation), and hours until it forgets.
    replaced_daily: the share of items that are replaced with new ones each midnight.
    *_buckets: ids that a model has for users and items.
    """

    wait: timedelta = timedelta(minutes=15)
    mean_delays: tuple[float, ...] = ()
    horizon: timedelta = HORIZON
    base_logit: float = -2.6
    returning: float = 1.0
    outages: tuple[Outage, ...] = ()
    stream_share: float = 1.0
    category_drift: tuple[float, float] = (0.9, 8.0)
    item_drift: tuple[float, float] = (0.5, 12.0)
    replaced_daily: float = 0.0
    user_buckets: int = 32_768
    item_buckets: int = 8_192


# Days 7 and 9 of twelve: a model that started on day 0 has settled before the first one.
_TWO_OUTAGES = (Outage(7 * 24 + 10, 6), Outage(9 * 24 + 18, 6))
MARKETS = {
    "late conversions": Market(wait=timedelta(hours=1), mean_delays=MEAN_DELAYS),
    "incident": Market(outages=_TWO_OUTAGES),
    "sparse stream": Market(stream_share=0.15),
    "drift": Market(),
    "collisions": Market(
        category_drift=(1.2, 6.0), replaced_daily=0.05, user_buckets=2_048, item_buckets=512
    ),
}


@dataclass(frozen=True)
class Events:
    """Everything that happened in a market, ordered by time; arrays of one length.

    features: user, item, category, segment, position and device, int64 each. at, published: event
    and publication, microseconds since 1970 UTC. converted: the complete label. known: the label
    in the stream. known_at: when the complete label was known, microseconds: the time of the
    conversion, or the end of the horizon if there was none; if labels are never late, the event's
    time. streamed: whether the event is in the stream.
    """

    features: dict[str, npt.NDArray[np.int64]]
    at: Times
    published: Times
    converted: npt.NDArray[np.bool_]
    known: npt.NDArray[np.bool_]
    known_at: Times
    streamed: npt.NDArray[np.bool_]

    def history(self) -> pa.Table:
        """All events with their complete label, ordered by time."""
        columns = {"converted": self.converted.astype(np.int64), "known_at": _times(self.known_at)}
        return self._table(np.arange(len(self.at)), columns)

    def stream(self) -> pa.Table:
        """The published events with the label as known then, ordered by publication."""
        rows = np.flatnonzero(self.streamed)
        rows = rows[np.argsort(self.published[rows], kind="stable")]
        columns = {"converted": self.known.astype(np.int64), "published": _times(self.published)}
        return self._table(rows, columns)

    def _table(self, rows: npt.NDArray[np.int64], last: dict[str, Any]) -> pa.Table:
        columns = {"id": np.arange(len(self.at)), "at": _times(self.at), **self.features, **last}
        return pa.table(columns).take(pa.array(rows))

    @property
    def share_known(self) -> float:
        """The share of the stream's conversions that is known at publication."""
        return float(self.known[self.streamed & self.converted].mean())


def generate(market: Market, seed: int, *, days: int = 12, hourly: int = 2_000) -> Events:
    """Make a market of `days` days with about `hourly` events per hour."""
    randoms = distinct_randoms(
        seed, ("traffic", "who", "what", "slot", "label", "delay", "log", "new")
    )
    hours = days * 24
    at = _traffic(randoms["traffic"], hours, hourly)
    hour = (at - _micros(START)) // _HOUR_US
    tastes = Tastes.drawn(seed, hours, market.replaced_daily)
    users = tastes.some_users(randoms["who"], len(at))
    slots = tastes.some_items(randoms["what"], len(at))
    items = tastes.item_in_slot[hour // 24, slots]
    position = randoms["slot"].integers(0, _POSITIONS, len(at))
    device = randoms["slot"].integers(0, 2, len(at))
    logit = market.base_logit + tastes.logits(users, items) - 0.3 * position + 0.2 * device
    drifts = tastes.drifts(seed, market.category_drift, market.item_drift)
    category = tastes.item_category[items]
    logit += drifts.of_category[hour, category] + drifts.of_item[hour, slots]
    bought = randoms["label"].random(len(at)) < 1 / (1 + np.exp(-logit))
    late = at * 0
    if market.mean_delays:
        late = _delays(randoms["delay"], category, market.mean_delays, seed)
    converted = bought & (late <= _delta(market.horizon))
    published = at + _delta(market.wait)
    never = _delta(market.horizon) if market.mean_delays else 0
    known_at = at + np.where(converted, late, never)
    known = converted & (known_at <= published)
    for outage in market.outages:
        first = _micros(START) + outage.first * _HOUR_US
        known &= (published < first) | (published >= first + outage.hours * _HOUR_US)
    streamed = randoms["log"].random(len(at)) < market.stream_share
    segment = tastes.user_segment[users]
    new = randoms["new"].random(len(at)) >= market.returning
    users = np.where(new, USERS + np.arange(len(at)), users)
    names = ("user", "item", "category", "segment", "position", "device")
    values = (users, items, category, segment, position, device)
    features = {name: each.astype(np.int64) for name, each in zip(names, values, strict=True)}
    return Events(features, at, published, converted, known, known_at, streamed)


def features_of(market: Market) -> dict[str, Any]:
    """The features of a market's model, as a dataset declares them."""
    return {
        "user": {"encode": "hash", "buckets": market.user_buckets},
        "item": {"encode": "hash", "buckets": market.item_buckets},
        "category": {"encode": "vocabulary", "values": list(range(CATEGORIES)), "dimension": 4},
        "segment": {"encode": "vocabulary", "values": list(range(12)), "dimension": 4},
        "position": {"encode": "vocabulary", "values": list(range(_POSITIONS)), "dimension": 4},
        "device": {"encode": "vocabulary", "values": [0, 1], "dimension": 4},
        "hour": {
            "encode": "vocabulary",
            "column": "at",
            "part": "hour",
            "values": list(range(24)),
            "dimension": 4,
        },
    }


def _traffic(random: np.random.Generator, hours: int, hourly: int) -> Times:
    """When the events happen, in order: few at night, many in the afternoon."""
    wave = 1 - _WAVE * np.cos(2 * np.pi * (np.arange(hours) - 3) / 24)
    counts = random.poisson(hourly * wave)
    inside = random.integers(0, _HOUR_US, counts.sum())
    return np.sort(_micros(START) + np.repeat(np.arange(hours), counts) * _HOUR_US + inside)


def _delays(
    random: np.random.Generator,
    category: npt.NDArray[np.int64],
    mean_hours: tuple[float, ...],
    seed: int,
) -> Times:
    """Microseconds from an event to its conversion."""
    means = np.resize(mean_hours, CATEGORIES)
    means = distinct_randoms(seed, ("means",))["means"].permutation(means)
    return (random.exponential(means[category]) * _HOUR_US).astype(np.int64)


def _times(micros: Times) -> pa.Array:
    return pa.array(micros, pa.timestamp("us", tz="UTC"))


def _micros(instant: datetime) -> int:
    return round(instant.timestamp() * 1e6)


def _delta(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
