"""Text for a terminal: text from data cannot move the cursor, rename the window or hide words.

Text for people is broken between words at the terminal's width, so that the terminal does not break
words.
"""

from __future__ import annotations

import re
import shutil
from textwrap import wrap
from typing import TextIO

# Control characters except tab and newline, those that change the direction of writing, and those
# that stand for an undecodable byte in a file name.
_OBEYED = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# A name and its value: `time     about 3 s`. Later lines are indented to the value.
_NAMED = re.compile(r"\s*\S{1,12}(?:  +|: )")
_COLUMNS_MIN = 20
_TAB = 4
_MORE = "…"


def printable(text: str) -> str:
    """The text, with each character that a terminal would obey written as its Python escape."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def columns() -> int:
    """How wide the terminal is; 80 if unknown."""
    return max(_COLUMNS_MIN, shutil.get_terminal_size().columns)


def broken(text: str, width: int) -> str:
    """The text with each line broken between words; a line with a longer word stays whole."""
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def fitted(text: str, stream: TextIO) -> str:
    """The text as shown on a stream: broken between words on a terminal, otherwise as it is."""
    return broken(text, columns()) if stream.isatty() else text


def _parts(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    named = _NAMED.match(line)
    indent = named.end() if named and named.end() <= width // 2 else len(line) - len(line.lstrip())
    found = wrap(
        line,
        width,
        subsequent_indent=" " * min(indent, width // 2),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    if len(found) > 1 and any(len(part) > width for part in found[1:]):
        return [line]  # breaking would not help a path, and a path is copied whole
    return found or [""]


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
