"""How Forebay tells of rows that a line will never train: the one place that knows its words."""

from __future__ import annotations

import re
from typing import NamedTuple

from support.line_sequences.operations import Facts

_NEVER = re.compile(r"never (be )?trained|not trained on|left out|without rows of", re.IGNORECASE)
_COUNTS = re.compile(r"has ([\d,]+) rows? now, and had ([\d,]+)")
_SKIPPED = re.compile(r"\bwithout\b|\bskipped\b", re.IGNORECASE)


class Told(NamedTuple):
    """What there is to read of a window that was just trained.

    link: as it is stored. why: the answer of `forebay why`. notes: of the command that trained it;
    None where it prints none (a stage of Airflow).
    """

    link: Facts
    why: str
    notes: list[str] | None


def names_gap(told: Told, use: str, *, skipped: bool) -> bool:
    """Whether it is told for good that rows of a use are not in the line.

    skipped: the source was late, and is declared to be left out then.
    """
    words = _SKIPPED if skipped else _NEVER
    in_why = use in told.why and words.search(told.why) is not None
    in_why |= "stale" in told.why  # then it says nothing else
    if skipped or told.notes is None:
        return in_why
    return in_why and any(use in note and words.search(note) for note in told.notes)


def names_loss(text: str) -> bool:
    """Whether an advice says that it replaces trained rows by fewer."""
    counts = [[int(count.replace(",", "")) for count in each] for each in _COUNTS.findall(text)]
    fewer = any(now < before for now, before in counts)
    return fewer or re.search(r"removed|fewer|gone|deleted|lose|without", text) is not None
