"""Problems as people see them: one line each, then the source line with a mark below the place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from forebay.config.problems import Problem
from forebay.config.yaml_files import read_bytes

_COLUMNS_MAX = 300


def caret_lines(problem: Problem) -> list[str]:
    """The source line and a mark below the place; nothing where they cannot be shown."""
    try:
        lines = read_bytes(Path(problem.file)).decode(errors="replace").splitlines()
    except OSError:
        return []
    if problem.line > len(lines) or problem.column > _COLUMNS_MAX:
        return []
    line = lines[problem.line - 1][:_COLUMNS_MAX]
    return [f"    {line}", f"    {' ' * (problem.column - 1)}^"]


def problems_text(problems: Iterable[Problem]) -> str:
    """What `forebay check` prints about these problems on a terminal, without its last line."""
    return "\n".join(line for problem in problems for line in (str(problem), *caret_lines(problem)))
