"""Who likes what in the generated ad market, and how that drifts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

USERS, ITEMS = 20_000, 2_000
SEGMENTS, CATEGORIES = 12, 15
USER_ZIPF, ITEM_ZIPF = 0.8, 1.0
_WIDTH = 6  # numbers in a taste
_OWN = 0.6  # weight of a user's or item's own taste, added to that of the segment or category
_MATCH = 1.2
_USER_BIAS, _ITEM_BIAS = 0.4, 0.6
_DAY = 24


def distinct_randoms(seed: int, names: Sequence[str]) -> dict[str, np.random.Generator]:
    """A random generator for each name, so that what one part draws does not affect another."""
    return {name: np.random.default_rng([seed, *name.encode()]) for name in names}


class Drifts(NamedTuple):
    """What drift adds to the logit: float64[hours, categories] and [hours, item slots]."""

    of_category: Floats
    of_item: Floats


@dataclass(frozen=True)
class Tastes:
    """Users and items. When an item is replaced, its slot gets a new one.

    user_taste: float64[users, 6]. item_taste: float64[all items ever, 6], and so on. item_in_slot:
    int64[days, slots], the item in each slot on each day.
    """

    user_taste: Floats
    user_bias: Floats
    user_segment: Ints
    item_taste: Floats
    item_bias: Floats
    item_category: Ints
    item_in_slot: Ints

    @classmethod
    def drawn(cls, seed: int, hours: int, replaced_daily: float) -> Self:
        randoms = distinct_randoms(seed, ("users", "items", "replaced"))
        users, items = randoms["users"], randoms["items"]
        segment = users.integers(0, SEGMENTS, USERS)
        segment_taste = users.normal(size=(SEGMENTS, _WIDTH))
        user_taste = segment_taste[segment] + _OWN * users.normal(size=(USERS, _WIDTH))
        in_slot = _replaced(randoms["replaced"], -(-hours // _DAY), replaced_daily)
        ever = int(in_slot.max()) + 1
        category_taste = items.normal(size=(CATEGORIES, _WIDTH))
        # All markets with the same seed start with the same items, however many follow.
        category = items.integers(0, CATEGORIES, ITEMS)
        own, bias = items.normal(size=(ITEMS, _WIDTH)), items.normal(size=ITEMS)
        more = ever - ITEMS
        category = np.concatenate([category, items.integers(0, CATEGORIES, more)])
        own = np.concatenate([own, items.normal(size=(more, _WIDTH))])
        bias = np.concatenate([bias, items.normal(size=more)])
        return cls(
            user_taste=user_taste,
            user_bias=_USER_BIAS * users.normal(size=USERS),
            user_segment=segment,
            item_taste=category_taste[category] + _OWN * own,
            item_bias=_ITEM_BIAS * bias,
            item_category=category,
            item_in_slot=in_slot,
        )

    def some_users(self, random: np.random.Generator, count: int) -> Ints:
        return _zipf(random, USERS, USER_ZIPF, count)

    def some_items(self, random: np.random.Generator, count: int) -> Ints:
        """The item slots of the events."""
        return _zipf(random, ITEMS, ITEM_ZIPF, count)

    def logits(self, users: Ints, items: Ints) -> Floats:
        """How well users and items match, plus the bias of each."""
        match: Floats = (self.user_taste[users] * self.item_taste[items]).sum(axis=1)
        return _MATCH * match / math.sqrt(_WIDTH) + self.user_bias[users] + self.item_bias[items]

    def drifts(self, seed: int, category: tuple[float, float], item: tuple[float, float]) -> Drifts:
        """Ornstein-Uhlenbeck walks of (size, hours until forgotten), one value per hour."""
        randoms = distinct_randoms(seed, ("category drift", "item drift"))
        hours = len(self.item_in_slot) * _DAY
        return Drifts(
            _walks(randoms["category drift"], hours, CATEGORIES, *category),
            _walks(randoms["item drift"], hours, ITEMS, *item),
        )


def _zipf(random: np.random.Generator, kinds: int, exponent: float, count: int) -> Ints:
    weights = np.arange(1, kinds + 1) ** -exponent
    return random.choice(kinds, count, p=weights / weights.sum())


def _replaced(random: np.random.Generator, days: int, share: float) -> Ints:
    rows = [np.arange(ITEMS)]
    for _ in range(days - 1):
        new = random.random(ITEMS) < share
        numbers = rows[-1].max() + np.cumsum(new)
        rows.append(np.where(new, numbers, rows[-1]))
    return np.stack(rows)


def _walks(
    random: np.random.Generator, hours: int, count: int, size: float, forgotten: float
) -> Floats:
    kept = math.exp(-1 / forgotten)
    steps = random.normal(size=(hours, count)) * size
    walks = np.empty_like(steps)
    walks[0] = steps[0]
    for hour in range(1, hours):
        walks[hour] = kept * walks[hour - 1] + math.sqrt(1 - kept**2) * steps[hour]
    return walks
