"""The generated markets that advice is measured on: one parameter after the other is varied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from replay import Span

from examples.demo.data.ad_market import MARKETS, MEAN_DELAYS, Market
from examples.demo.data.ad_tastes import USERS

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
# Sizes of drift, and hours until it is forgotten: of categories, of items.
FAST: dict[str, Any] = {"category_drift": (0.9, 8.0), "item_drift": (0.5, 12.0)}
SLOW: dict[str, Any] = {"category_drift": (0.9, 96.0), "item_drift": (0.5, 144.0)}
_DAYS_LATE = (6.0, 12.0, 24.0, 48.0)
_MINUTES_LATE = (0.1, 0.2, 0.4, 0.8)
RARE = -5.0  # about 1% of events convert, instead of a tenth


@dataclass(frozen=True)
class Setting:
    """A market, and the windows in which a line learns it.

    The warm start is four days and the horizon; the day after it lets all variants settle.
    """

    market: Market
    data: str
    window_hours: int = 1
    hourly: int = 1_000
    judged_days: int = 6

    @property
    def days(self) -> int:
        return 5 + self.market.horizon // _DAY + self.judged_days

    @property
    def horizon_windows(self) -> int:
        return self.market.horizon // timedelta(hours=self.window_hours)

    @property
    def span(self) -> Span:
        windows_a_day = 24 // self.window_hours
        warm = (4 + self.market.horizon // _DAY) * windows_a_day
        return Span(
            windows=self.days * windows_a_day,
            warm=warm,
            judged_from=warm + windows_a_day,
            unread=self.horizon_windows,
        )

    @property
    def is_crowded(self) -> bool:
        return self.market.user_buckets < USERS


@dataclass(frozen=True)
class _Lateness:
    """How late labels are. name: about the share of positives that is known at publication."""

    name: str
    wait: timedelta
    mean_delays: tuple[float, ...] = MEAN_DELAYS
    horizon: timedelta = _DAY

    @property
    def options(self) -> dict[str, Any]:
        return {"wait": self.wait, "mean_delays": self.mean_delays, "horizon": self.horizon}

    @property
    def data(self) -> str:
        if not self.mean_delays:
            return "labels are never late"
        first, last = self.mean_delays[0], self.mean_delays[-1]
        return (
            f"conversions come {first:g} to {last:g} hours after their event on average, "
            f"an event is published after {self.wait / _HOUR:g}"
        )


def _days_late(name: str, hours: float) -> _Lateness:
    return _Lateness(name, hours * _HOUR, _DAYS_LATE, 3 * _DAY)


COMPLETE = _Lateness("100%", _HOUR / 4, ())
_4, _21 = _days_late("4%", 0.5), _days_late("21%", 3)
_48 = _days_late("48%", 9)
_22, _35, _49 = _Lateness("22%", _HOUR / 4), _Lateness("35%", _HOUR / 2), _Lateness("49%", _HOUR)
_62, _75 = _Lateness("62%", 2 * _HOUR), _Lateness("75%", 4 * _HOUR)
_82, _93 = _Lateness("82%", 6 * _HOUR), _Lateness("93%", 12 * _HOUR)
_98 = _Lateness("98%", 2 * _HOUR, _MINUTES_LATE)


def _settings() -> Iterator[tuple[str, Setting]]:
    for late in (_4, _21, _22, _35, _49, _62, _75, _82, _93, _98, COMPLETE):
        yield f"{late.name} known, fast drift", _setting(late, "tastes change within hours", FAST)
    for late in (_4, _21, _48, _35, _62, _82, _98, COMPLETE):
        yield f"{late.name} known, slow drift", _setting(late, "tastes change in days", SLOW)
    for late in (_49, COMPLETE):
        yield f"{late.name} known, rare", _setting(late, "1% convert", FAST, base_logit=RARE)
        words = "three of ten events are of users seen again"
        yield f"{late.name} known, strangers", _setting(late, words, SLOW, returning=0.3)
        words = "15% of the events are in the stream"
        yield f"{late.name} known, sparse stream", _setting(late, words, FAST, stream_share=0.15)
        setting = _setting(late, "tastes change within hours, 3,000 events an hour", FAST)
        yield f"{late.name} known, many events", replace(setting, hourly=3_000)
    outages = MARKETS["incident"].outages
    for late in (_62, COMPLETE):
        words = "the stream publishes no conversions for six hours, twice"
        yield f"{late.name} known, incident", _setting(late, words, FAST, outages=outages)
    crowd = MARKETS["collisions"]
    words = "users and items share few ids, 5% of the items are replaced each day"
    yield "100% known, collisions", Setting(crowd, f"{words}; {COMPLETE.data}")
    for late in (_21, _62, COMPLETE):
        setting = _setting(late, "daily windows, tastes change in days", SLOW)
        yield (
            f"{late.name} known, daily windows",
            replace(setting, window_hours=24, judged_days=12),
        )


def _setting(late: _Lateness, words: str, *options: dict[str, Any], **more: Any) -> Setting:
    merged: dict[str, Any] = {**late.options, **more}
    for each in options:
        merged |= each
    return Setting(Market(**merged), f"{words}; {late.data}")


SETTINGS = dict(_settings())
