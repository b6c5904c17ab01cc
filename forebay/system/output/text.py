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
