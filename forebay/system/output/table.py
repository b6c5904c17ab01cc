"""Tables that fit a terminal: no cell is cut, and no word is broken.

If the columns are too wide side by side, cells are broken between words; if that is not enough,
some columns move below their row, each with its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

_GAP = 2
_INDENT = "    "
# If a cell became higher, a column moves below its row.
_LINES_MAX = 4
_EMPTY = {"", "-"}


@dataclass(frozen=True)
class TableColumn:
    """A column. right: right-aligned, for numbers. moves: among the first to move below the row."""

    name: str
    right: bool = False
    moves: bool = False


def table_lines(
    table: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int
) -> Iterator[str]:
    """Lines of a table, beginning with the header and a rule.

    rows: texts by column. width: of the terminal, in characters; only a longer word exceeds it.
    """
    cells = [[" ".join(text.split()) for text in row] for row in rows]
    kept, moved = list(range(len(table))), list[int]()
    widths = _widths(table, cells, kept, width)
    while widths is None and len(kept) > 1:
        leaving = _leaving(table, cells, kept)
        kept = [number for number in kept if number not in leaving]
        moved += leaving
        widths = _widths(table, cells, kept, width)
    if widths is None:
        word, whole = _longest(table, cells, kept[0])
        widths = [max(word, min(whole, width))]
    yield from _drawn([table[n].name for n in kept], [table[n].right for n in kept], widths)
    yield "─" * (sum(widths) + _GAP * (len(widths) - 1))
    for row in cells:
        yield from _drawn([row[n] for n in kept], [table[n].right for n in kept], widths)
        below = [f"{table[n].name} {row[n]}" for n in sorted(moved) if row[n] not in _EMPTY]
        yield from _broken("  ".join(below), width - len(_INDENT), _INDENT)


def _widths(
    table: Sequence[TableColumn], cells: list[list[str]], kept: Sequence[int], width: int
) -> list[int] | None:
    """A width for each column that is kept; None if they do not fit side by side."""
    lengths = [_longest(table, cells, number) for number in kept]
    found = [word for word, _ in lengths]
    left = width - _GAP * (len(kept) - 1) - sum(found)
    if left < 0:
        return None
    while left > 0:
        lacking = [whole - now for (_, whole), now in zip(lengths, found, strict=True)]
        widest = max(range(len(kept)), key=lacking.__getitem__)
        if lacking[widest] <= 0:
            break
        found[widest] += 1
        left -= 1
    high = any(
        len(_broken(row[number], size)) > _LINES_MAX
        for row in cells
        for number, size in zip(kept, found, strict=True)
    )
    return None if high else found


def _longest(table: Sequence[TableColumn], cells: list[list[str]], number: int) -> tuple[int, int]:
    """The longest word of a column, and its longest text; of its name, only words count."""
    texts = [row[number] for row in cells]
    name = max(map(len, table[number].name.split()), default=0)
    word = max((len(word) for text in texts for word in text.split()), default=0)
    return max(name, word), max(name, *map(len, texts)) if texts else name


def _leaving(
    table: Sequence[TableColumn], cells: list[list[str]], kept: Sequence[int]
) -> list[int]:
    """The columns that move below next: those with `moves`, else the one with the longest text."""
    willing = [number for number in kept[1:] if table[number].moves]
    texts = [number for number in kept[1:] if not table[number].right]
    others = reversed(texts or kept[1:])
    return willing or [max(others, key=lambda number: _longest(table, cells, number)[1])]


def _drawn(texts: Sequence[str], right: Sequence[bool], widths: Sequence[int]) -> Iterator[str]:
    parts = [_broken(text, width) for text, width in zip(texts, widths, strict=True)]
    for number in range(max(map(len, parts))):
        line = [part[number] if number < len(part) else "" for part in parts]
        padded = (
            text.rjust(width) if is_right else text.ljust(width)
            for text, is_right, width in zip(line, right, widths, strict=True)
        )
        yield (" " * _GAP).join(padded).rstrip()


def _broken(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of a text; without `indent` at least one, even of an empty text."""
    found = wrap(text, max(1, width), break_long_words=False, break_on_hyphens=False)
    return [indent + line for line in found] or ([] if indent else [""])
