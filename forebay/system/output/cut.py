"""The part of a line around one of its characters that fits on a terminal."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right

from forebay.system.output.text import printable

_TAB = 4
_MORE = "…"


def around(line: str, place: int, width: int) -> tuple[str, int]:
    """A part of a line of at most this width, and how many columns of it are before the place.

    Tabs become spaces, and characters that a terminal would obey their escapes. An ellipsis stands
    for what is cut off at an end. The place may be after the line's last character.
    """
    shown: list[str] = []
    ends = [0]
    for character in line:
        text = " " * (_TAB - ends[-1] % _TAB) if character == "\t" else printable(character)
        shown.append(text)
        ends.append(ends[-1] + sum(map(_columns, text)))
    place = min(place, len(shown))
    total = ends[-1] + (place == len(shown))  # the mark needs a column too
    start = max(0, min(ends[place] - width // 2, total - width))
    if start == 0:
        first, left = 0, ""
    else:
        first, left = bisect_right(ends, start), _MORE
    if ends[-1] <= start + width:
        last, right = len(shown), ""
    else:
        last, right = bisect_left(ends, start + width) - 1, _MORE
    return f"{left}{''.join(shown[first:last])}{right}", len(left) + ends[place] - ends[first]


def _columns(character: str) -> int:
    """How many columns a terminal gives to a character."""
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
