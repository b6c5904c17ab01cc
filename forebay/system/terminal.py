"""Text for a terminal: what came from data moves no cursor, names no window and hides no word."""

from __future__ import annotations

import re

# Control characters but for tab and newline, those that turn the direction of writing, and what
# stands for a byte that is no text in the name of a file.
_OBEYED = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text, in which each character that a terminal obeys is written as its code in Python."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)
