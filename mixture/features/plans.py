"""Plans: what kernels compute from which column, as tables of numbers, from declared features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import farmhash
import numpy as np
import numpy.typing as npt

from forebay.config.specs.features import (
    BucketiseFeature,
    CrossFeature,
    FeatureSpec,
    HashFeature,
    NumericFeature,
    VocabularyFeature,
)
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.values import Ints
from forebay.mixture.kernels import codes

_PARTS = {None: codes.NO_PART, "hour": codes.HOUR_PART, "weekday": codes.WEEKDAY_PART}


class Plans:
    """Tables of the features of a layout.

    dense, ids, lists: int64[features, PLAN_WIDTH] in layout order. scalings: float64[dense
    features, 3].
    """

    def __init__(self, layout: FeatureLayout, columns: Sequence[str]) -> None:
        """columns: those of the table of views, in order."""
        self._places = {name: place for place, name in enumerate(columns)}
        self._layout = layout
        self._keeps: list[npt.NDArray[Any]] = []  # the plans hold their addresses
        self.dense = self._table(layout.dense)
        self.ids = self._table([column.name for column in layout.ids])
        self.lists = self._table([column.name for column in layout.lists])
        self.scalings = _scalings(layout)

    def _table(self, features: Sequence[str]) -> Ints:
        rows = [self._plan(name, self._layout.specs[name]) for name in features]
        return np.array(rows, np.int64).reshape(-1, codes.PLAN_WIDTH)

    def _plan(self, feature: str, spec: FeatureSpec) -> list[int]:
        plan = [0] * codes.PLAN_WIDTH
        if isinstance(spec, CrossFeature):
            places = np.array([self._places[column] for column in spec.columns], np.int64)
            plan[codes.METHOD], plan[codes.COUNT] = codes.CROSS, len(places)
            plan[codes.TABLE] = self._kept(places)
            _set_modulus(plan, spec.buckets - 1)
            return plan
        plan[codes.VIEW] = self._places[self._layout.columns_of(feature)[0]]
        plan[codes.PART] = _PARTS[spec.part]
        if isinstance(spec, NumericFeature):
            plan[codes.METHOD] = codes.LOG1P if spec.transform == "log1p" else codes.NUMERIC
        elif isinstance(spec, HashFeature):
            plan[codes.METHOD] = codes.HASH
            _set_modulus(plan, spec.buckets - 1)
        elif isinstance(spec, BucketiseFeature):
            plan[codes.METHOD], plan[codes.COUNT] = codes.BUCKETISE, len(spec.boundaries)
            plan[codes.TABLE] = self._kept(np.array(spec.boundaries, np.float64))
        else:
            self._plan_vocabulary(plan, spec)
        return plan

    def _plan_vocabulary(self, plan: list[int], spec: VocabularyFeature) -> None:
        texts = [str(value).encode() for value in spec.values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        found = np.array([farmhash.fingerprint64(str(value)) for value in spec.values], np.uint64)
        slots = slots_of(found)
        plan[codes.METHOD] = codes.VOCABULARY
        plan[codes.COUNT], plan[codes.MODULUS] = len(texts), len(slots)
        plan[codes.TABLE] = self._kept(ends)
        plan[codes.MORE] = self._kept(np.frombuffer(b"".join(texts) or b"\0", np.uint8))
        plan[codes.FINGERPRINTS], plan[codes.SLOTS] = self._kept(found), self._kept(slots)

    def _kept(self, array: npt.NDArray[Any]) -> int:
        self._keeps.append(array)
        return array.ctypes.data


def _set_modulus(plan: list[int], modulus: int) -> None:
    """Set it with its inverse, as the int64 with the same bits."""
    plan[codes.MODULUS] = modulus
    plan[codes.INVERSE] = int(np.uint64(min(2**64 // modulus, 2**64 - 1)).view(np.int64))


def slots_of(fingerprints: npt.NDArray[np.uint64]) -> Ints:
    """Numbers from 1 of fingerprints, each at the first free slot from its own on; 0 is free.

    At least half of the slots are free, so every search ends.
    """
    count = 2
    while count < 2 * len(fingerprints):
        count *= 2
    slots = np.zeros(count, np.int64)
    for number, fingerprint in enumerate(fingerprints.tolist()):
        slot = fingerprint % count
        while slots[slot]:
            slot = (slot + 1) % count
        slots[slot] = number + 1
    return slots


def _scalings(layout: FeatureLayout) -> npt.NDArray[np.float64]:
    specs = [layout.specs[name] for name in layout.dense]
    rows = [(s.mean, s.scale, s.missing) for s in specs if isinstance(s, NumericFeature)]
    return np.array(rows, np.float64).reshape(-1, 3)
