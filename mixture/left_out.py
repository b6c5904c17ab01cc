"""LeftOut: rows that a variant saw but was not trained on, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Suffix, in counts of rows, of rows of a variant that its guard held: `stream/paused`.
PAUSED = "/paused"
# Suffix of rows that lack one of several labels: `sale/label_not_known`.
NOT_KNOWN = "/label_not_known"


def unsaid(learnt: Mapping[str, int]) -> dict[str, int]:
    """Rows that lacked a label in time, by label, if any. learnt: see `learnt_and_left_out`."""
    return {
        name.removesuffix(NOT_KNOWN): rows
        for name, rows in learnt.items()
        if name.endswith(NOT_KNOWN) and rows
    }


class LeftOut(NamedTuple):
    """Rows by source index. masked: their label says too little yet. paused: held by the guard."""

    masked: list[int]
    paused: list[int]


def learnt_and_left_out(
    learnt: Mapping[str, list[int]], left_out: Mapping[str, LeftOut]
) -> dict[str, list[int]]:
    """Rows by variant and source; those left out as `stream+head/masked` and `stream/paused`."""
    found = dict(learnt)
    for variant, rows in left_out.items():
        found |= {f"{variant}/{reason}": each for reason, each in rows._asdict().items()}
    return found
