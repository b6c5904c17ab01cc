"""Did you mean: the known word that a misspelled one was meant to be."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher

_RATIO_MIN = 0.6


def edits(word: str, other: str) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(word, start=1):
        row = [i]
        for j, target in enumerate(other, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != target))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == target:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def nearest(word: str, known: Iterable[str], *preferred: Collection[str]) -> str:
    """The known word that `word` probably was meant to be, or an empty text.

    Fewest edits win; among equals the words of the first group in `preferred`, then of the next
    one, then the most similar word.
    """
    best: tuple[int, int, float, str] | None = None
    for candidate in known:
        distance = edits(word.casefold(), candidate.casefold())
        ratio = SequenceMatcher(None, word.casefold(), candidate.casefold()).ratio()
        if distance > max(1, len(candidate) // 3) and ratio < _RATIO_MIN:
            continue
        group = next((n for n, words in enumerate(preferred) if candidate in words), len(preferred))
        rank = (distance, group, -ratio, candidate)
        best = rank if best is None else min(best, rank)
    return best[3] if best else ""
