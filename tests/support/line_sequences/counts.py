"""How often each operation was done, and each kind of refusal was met."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from support.sequences.declared import CLICKS, DAILY, HISTORY

# Refusals of the same kind have one name, whatever words are around these.
REFUSALS = {
    "a line of another model": "features, label, model or sources changed",
    "a stale model": "starts from the model of window",
    "a gap in the line": "not trained yet, and each window starts|not trained although its run",
    "a window of another grid": "is not a window of size",
    "another window with the same rows": "shares rows with window",
    "a window of another time": "was trained as .* but is now",
    "part of the warm start": "is part of the warm start",
    "before the dataset": "is before the dataset's start",
    "after the dataset": "is after the dataset's end",
    "a checkpoint that is not kept": "can no longer be built on",
    "rows by another time": "belong to windows by",
    "rows never": "would never be trained",
    "rows twice": "would be trained twice",
    "a line that begins with nothing": "cannot begin line",
    "a source that is not complete": "is not complete",
    "a source that is silent": "is silent: no rows",
    "a partition that is gone": "its folder is gone",
    "deleted rows": "were deleted",
    "a log that was made anew": "it was truncated or recreated",
    "a log of another place": "were planned from a different one",
}
_NUMBERS = re.compile(r"[\d][\w:.\-_]*")
_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^]]*\]")


def kind_of(refusal: str) -> str:
    """The name of a refusal's kind, or its class and first words without names and numbers."""
    for name, words in REFUSALS.items():
        if re.search(words, refusal):
            return name
    plain = _NUMBERS.sub("N", _NAMES.sub("NAME", refusal))
    plain = re.sub(rf"\b({CLICKS}|{DAILY}|{HISTORY})\b", "NAME", plain)
    return " ".join(plain.split()[:12])


@dataclass
class Seen:
    operations: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    undone: Counter[str] = field(default_factory=Counter)

    def counts(self) -> dict[str, dict[str, int]]:
        return {name: dict(found.most_common()) for name, found in vars(self).items()}

    def add(self, other: Seen) -> None:
        self.operations += other.operations
        self.refusals += other.refusals
        self.changes += other.changes
        self.undone += other.undone
