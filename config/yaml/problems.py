"""Problem: one thing wrong with a declaration, where it is and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

__all__ = ["Problem"]

Severity = Literal["error", "note"]
# Per file. Nobody reads more than these, and finding the right spellings takes time.
PROBLEMS_MAX = 100
HINTS_MAX = 10


@dataclass(frozen=True, order=True)
class Problem:
    """Something wrong at one place of a file. A `note` is worth knowing and fails nothing.

    `message` is a whole sentence with the thing, its value and what to do; `hint` is just the right
    spelling if one is known, else empty. Lines and columns count from 1.
    """

    file: str
    line: int
    column: int
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"

    def to_json(self) -> dict[str, str | int]:
        """The fixed form of `forebay check --output json`."""
        return {name: value for name, value in asdict(self).items() if name != "severity"}

    def __str__(self) -> str:
        note = "note: " if self.severity == "note" else ""
        text = f"{self.file}:{self.line}:{self.column}: {note}{self.message}"
        # A spelling is offered as a question; a hint of several words is shown as it is.
        is_spelling = " " not in self.hint or self.hint.startswith('"')
        way_out = f"did you mean {self.hint}?" if is_spelling else self.hint
        return f"{text} ({way_out})" if self.hint else text


def first_of_file(problems: list[Problem]) -> list[Problem]:
    """The first PROBLEMS_MAX of a file in order, plus one saying that there are more, if so."""
    shown = sorted(problems)[:PROBLEMS_MAX]
    if len(problems) > len(shown):
        last = shown[-1]
        message = "there are more problems in this file: correct the ones above first"
        shown.append(Problem(last.file, last.line, last.column, "more-problems", message))
    return shown


def errors(problems: Iterable[Problem]) -> list[Problem]:
    """The problems that make a declaration unusable."""
    return [problem for problem in problems if problem.severity == "error"]
