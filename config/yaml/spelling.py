"""Did you mean: the known word closest to a misspelled one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher

_RATIO_MIN = 0.6
# Comparisons between letters; this many take a tenth of a second.
_STEPS_MAX = 100_000


def edits(word: str, other: str) -> int:
    """Number of insertions, deletions, substitutions and adjacent swaps between two words."""
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


def _may_be_near(letters: Counter[str], candidate: str) -> bool:
    """Quick check, ignoring the order of letters, whether a candidate can be close enough."""
    others = Counter(candidate.casefold())
    one, other, common = letters.total(), others.total(), (letters & others).total()
    few_edits = max(one, other) - common <= max(1, len(candidate) // 3)
    return few_edits or 2 * common >= _RATIO_MIN * (one + other)


def nearest(word: str, known: Iterable[str], *preferred: Collection[str]) -> str:
    """The known word that `word` was probably meant to be, or an empty text.

    A word that needs edits for more than half of its letters is another word. The fewest edits
    win; ties go to the words of the first group in `preferred`, then of the next one, then to the
    most similar word.
    """
    best: tuple[int, int, float, str] | None = None
    letters, steps = Counter(word.casefold()), 0
    for candidate in known:
        if not _may_be_near(letters, candidate):
            continue
        steps += len(word) * len(candidate)
        if steps > _STEPS_MAX:
            break
        distance = edits(word.casefold(), candidate.casefold())
        ratio = SequenceMatcher(None, word.casefold(), candidate.casefold()).ratio()
        alike = ratio >= _RATIO_MIN and 2 * distance <= max(len(word), len(candidate))
        if distance > max(1, len(candidate) // 3) and not alike:
            continue
        group = next((n for n, words in enumerate(preferred) if candidate in words), len(preferred))
        rank = (distance, group, -ratio, candidate)
        best = rank if best is None else min(best, rank)
    return best[3] if best else ""
