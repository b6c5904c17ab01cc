"""Problems as people see them: one line each, then the source line with a mark below the place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from forebay.config.problems import Problem


def caret_lines(problem: Problem) -> list[str]:
    """The source line and a mark below the place; nothing where the file or line is not there."""
    path = Path(problem.file)
    if not path.is_file():
        return []
    lines = path.read_text(errors="replace").splitlines()
    if problem.line > len(lines):
        return []
    return [f"    {lines[problem.line - 1]}", f"    {' ' * (problem.column - 1)}^"]


def problems_text(problems: Iterable[Problem]) -> str:
    """What `forebay check` prints about these problems on a terminal, without its last line."""
    return "\n".join(line for problem in problems for line in (str(problem), *caret_lines(problem)))
