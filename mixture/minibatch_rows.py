"""Some rows of a minibatch, and several minibatches as one: no Python object per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from forebay.mixture.minibatch import LabelRows, Minibatch

Ragged = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def take(minibatch: Minibatch, rows: npt.NDArray[np.intp]) -> Minibatch:
    """The rows at these places (int[M]), in their order."""
    found: dict[str, Any] = {"feed": minibatch.feed}
    for name in _columns(minibatch):
        found[name] = getattr(minibatch, name)[rows]
    found["lists"] = tuple(_taken(ragged, rows) for ragged in minibatch.lists)
    found["further"] = tuple(
        LabelRows(**{name: each[rows] for name, each in _arrays(one).items()})
        for one in minibatch.further
    )
    return Minibatch(**found)


def joined(minibatches: Sequence[Minibatch]) -> Minibatch:
    """All rows of one or more minibatches with the same feed and layout, in order."""
    first = minibatches[0]
    if len(minibatches) == 1:
        return first
    found: dict[str, Any] = {"feed": first.feed}
    for name in _columns(first):
        found[name] = np.concatenate([getattr(one, name) for one in minibatches])
    lists = zip(*(one.lists for one in minibatches), strict=True)
    found["lists"] = tuple(_joined(ragged) for ragged in lists)
    labels = zip(*(map(_arrays, one.further) for one in minibatches), strict=True)
    found["further"] = tuple(
        LabelRows(**{name: np.concatenate([each[name] for each in several]) for name in several[0]})
        for several in labels
    )
    return Minibatch(**found)


def _columns(minibatch: Minibatch) -> list[str]:
    """Names of what has an entry per row, without lists; what is None is left out."""
    others = {"feed", "lists", "further"}
    names = [field.name for field in fields(minibatch) if field.name not in others]
    return [name for name in names if getattr(minibatch, name) is not None]


def _arrays(rows: LabelRows) -> dict[str, npt.NDArray[Any]]:
    found = {field.name: getattr(rows, field.name) for field in fields(rows)}
    return {name: each for name, each in found.items() if each is not None}


def _taken(ragged: Ragged, rows: npt.NDArray[np.intp]) -> Ragged:
    splits, values = ragged
    starts, lengths = splits[rows], splits[rows + 1] - splits[rows]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)
    return ends, values[places]


def _joined(several: Sequence[Ragged]) -> Ragged:
    lengths = [np.diff(splits) for splits, _ in several]
    ends = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return ends, np.concatenate([values for _, values in several])
