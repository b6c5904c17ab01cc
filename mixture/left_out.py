"""LeftOut: rows that a variant saw and did not learn from, and why."""

from __future__ import annotations

from typing import NamedTuple


class LeftOut(NamedTuple):
    """By source index. masked: their label says too little yet. paused: the guard held them."""

    masked: list[int]
    paused: list[int]
