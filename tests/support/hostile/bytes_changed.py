"""Faults in arbitrary bytes: wrong numbers, flipped bits, parts that are cut or doubled."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

_LONGS = (0, 1, -1, 7, 8, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), -(2**31))


@dataclass(frozen=True)
class Places:
    """Where in some bytes numbers stand that say something of the others.

    longs, ints, small: of eight, four and one byte. byte_order: of the larger ones.
    """

    longs: Sequence[int] = field(default_factory=list)
    ints: Sequence[int] = field(default_factory=list)
    small: Sequence[int] = field(default_factory=list)
    byte_order: str = "little"


def changed(content: bytes, places: Places, chance: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        _fault(found, places, chance)
    return bytes(found)


def _fault(found: bytearray, places: Places, chance: random.Random) -> None:
    kind = chance.random()
    if kind < 0.35 and places.longs:
        _number(found, chance.choice(places.longs), 8, places.byte_order, chance)
    elif kind < 0.6 and places.ints:
        _number(found, chance.choice(places.ints), 4, places.byte_order, chance)
    elif kind < 0.7 and places.small:
        at = chance.choice(places.small)
        if at < len(found):
            found[at] = chance.randrange(256)
    elif kind < 0.9:
        if found:
            found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    elif kind < 0.94:
        del found[chance.randrange(len(found) + 1) :]
    else:
        _part(found, chance)


def _number(found: bytearray, at: int, size: int, order: str, chance: random.Random) -> None:
    if at + size > len(found):
        return
    bits = 8 * size
    before = int.from_bytes(found[at : at + size], order)  # type: ignore[arg-type]
    near = before + chance.choice((-8, -2, -1, 1, 2, 8, 64))
    value = chance.choice((near, 2 * before, chance.choice(_LONGS), chance.getrandbits(bits)))
    found[at : at + size] = (value % 2**bits).to_bytes(size, order)  # type: ignore[arg-type]


def _part(found: bytearray, chance: random.Random) -> None:
    first = chance.randrange(len(found) + 1)
    end = min(len(found), first + chance.choice((1, 4, 8, 64, 512)))
    other = chance.randrange(len(found) + 1)
    part = found[first:end]
    kind = chance.randrange(4)
    if kind == 0:
        found[other : other + len(part)] = part
    elif kind == 1:
        found[other:other] = part
    elif kind == 2:
        found[first:end] = bytes(len(part))
    else:
        del found[first:end]
