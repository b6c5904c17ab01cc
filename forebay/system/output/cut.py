"""The part of a line around one of its characters that fits on a terminal."""

from __future__ import annotations

from forebay.system.output.text import printable

_TAB = 4
_MORE = "…"


def around(line: str, place: int, width: int) -> tuple[str, int]:
    """A part of a line of at most this width, and how many columns of it are before the place.

    Tabs become spaces, and characters that a terminal would obey their escapes. An ellipsis stands
    for what is cut off at an end. The place may be after the line's last character.
    """
    from rich.cells import cell_len, set_cell_size

    rest = printable(line.expandtabs(_TAB))
    before = cell_len(printable(line[:place].expandtabs(_TAB)))
    whole = cell_len(rest) + (place >= len(line))  # the mark needs a column too
    start = max(0, min(before - width // 2, whole - width))
    left = ""
    if start:
        gone = rest[: len(set_cell_size(rest, start + 1))]
        left, rest, before = _MORE, rest[len(gone) :], before - cell_len(gone) + 1
    if cell_len(left + rest) > width:
        rest = set_cell_size(rest, width - len(left) - 1) + _MORE
    return left + rest, before
