"""Tables that fit a terminal: no cell is cut, and no word is broken.

If the columns are too wide side by side, cells are broken between words; if that is not enough,
some columns move below their row, each with its name. Tables of `rich` cannot do either: they break
dates and numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap

_GAP = 2
_INDENT = "    "
# If a cell would need more lines, a column moves below its row.
_LINES_MAX = 4
_EMPTY = {"", "-"}


@dataclass(frozen=True)
class TableColumn:
    """A column. right: right-aligned, for numbers. moves: among the first to move below the row."""

    name: str
    right: bool = False
    moves: bool = False


def table_lines(
    table: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int | None
) -> Iterator[str]:
    """Lines of a table, beginning with the header and, on a terminal, a rule.

    rows: texts by column. width: of the terminal, in characters; only a longer word exceeds it.
    None if it is no terminal: each row is one line.
    """
    names = [column.name for column in table]
    if width is None:
        widths = [max(map(len, texts)) for texts in zip(names, *rows, strict=True)]
        yield from (_line(table, row, widths) for row in (names, *rows))
        return
    cells = [[" ".join(text.split()) for text in row] for row in rows]
    sizes = [_sizes(name, texts, width) for name, *texts in zip(names, *cells, strict=True)]
    kept = _kept(table, sizes, width)
    widths = _widths([sizes[number] for number in kept], width)
    for row in (names, *cells):
        broken = (_broken(row[number], size) for number, size in zip(kept, widths, strict=True))
        for texts in zip_longest(*(lines or [""] for lines in broken), fillvalue=""):
            yield _line([table[number] for number in kept], texts, widths)
        if row is names:
            yield "─" * _total(widths)
            continue
        moved = [number for number in range(len(table)) if number not in kept]
        below = [f"{names[number]} {row[number]}" for number in moved if row[number] not in _EMPTY]
        yield from (_INDENT + line for line in _broken("  ".join(below), width - len(_INDENT)))


def _sizes(name: str, texts: Sequence[str], width: int) -> tuple[int, int]:
    """The least width of a column, and that of its longest text; of its name, only words count."""
    whole = max(map(len, [*name.split(), *texts]), default=0)
    word = max((len(word) for text in (name, *texts) for word in text.split()), default=0)
    return max(word, min(width, -(-whole // _LINES_MAX))), whole


def _kept(
    table: Sequence[TableColumn], sizes: Sequence[tuple[int, int]], width: int
) -> Sequence[int]:
    """The columns that fit side by side. Others leave: those with `moves`, then the longest."""
    kept = list(range(len(table)))
    while len(kept) > 1 and _total([sizes[number][0] for number in kept]) > width:
        willing = [number for number in kept[1:] if table[number].moves]
        texts = [number for number in kept[1:] if not table[number].right]
        others = reversed(texts or kept[1:])
        leaving = willing or [max(others, key=lambda number: sizes[number][1])]
        kept = [number for number in kept if number not in leaving]
    return kept


def _widths(sizes: Sequence[tuple[int, int]], width: int) -> list[int]:
    """A width for each column: the widest are made narrower until all fit."""
    for most in range(width, 0, -1):
        widths = [max(least, min(whole, most)) for least, whole in sizes]
        if _total(widths) <= width:
            return widths
    return [least for least, _ in sizes]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _line(table: Sequence[TableColumn], texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        text.rjust(width) if column.right else text.ljust(width)
        for column, text, width in zip(table, texts, widths, strict=True)
    )
    return (" " * _GAP).join(padded).rstrip()


def _broken(text: str, width: int) -> list[str]:
    return wrap(text, max(1, width), break_long_words=False, break_on_hyphens=False)
