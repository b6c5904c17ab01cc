"""Problems as users see them: one line each, then the source line with a mark below the place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from forebay.config.problems import Problem
from forebay.config.yaml_files import read_bytes
from forebay.system.redaction import HIDDEN, is_secret_name

_COLUMNS_MAX = 300
_LINES_ABOVE_MAX = 1000
_KEY = re.compile(r"(?P<name>[\w.\-]{1,200})['\"]?\s{0,9}[:=,]")
# Followed at most by what starts a multi-line text, a list or a mapping.
_LAST_KEY = re.compile(r"(?P<name>[\w.\-]{1,200})['\"]?\s{0,9}:(?:\s*[|>\[{&!].{0,200})?\s*$")


def caret_lines(problem: Problem) -> list[str]:
    """The source line and a mark below the place; nothing if they cannot be shown."""
    try:
        text = read_bytes(Path(problem.file)).decode(errors="replace")
    except OSError:
        return []
    lines = [line[:_COLUMNS_MAX] for line in text.splitlines()]
    if problem.line > len(lines) or problem.column > _COLUMNS_MAX:
        return []
    line = _without_secrets(lines, problem.line - 1)
    return [f"    {line}", f"    {' ' * (problem.column - 1)}^"]


def _without_secrets(lines: Sequence[str], index: int) -> str:
    """A line without values that its own keys, or an enclosing key, mark as secret.

    Works on the text alone, as the file may not be YAML: nothing is shown after such a key.
    """
    line = lines[index]
    if _is_below_secret(lines, index):
        return _indent(line) + HIDDEN
    for word in _KEY.finditer(line):
        if is_secret_name(word["name"]):
            return line[: word.end()] + f" {HIDDEN}"
    return line


def _is_below_secret(lines: Sequence[str], index: int) -> bool:
    """Whether a line belongs to the value of a secret key on a line above it."""
    depth = _depth(lines[index])
    for above in reversed(lines[max(0, index - _LINES_ABOVE_MAX) : index]):
        if above.strip() and _depth(above) < depth:
            depth = _depth(above)
            key = _LAST_KEY.search(above)
            if key is not None and is_secret_name(key["name"]):
                return True
    return False


def _depth(line: str) -> int:
    """Indentation depth. Items of a list count as deeper than its key even at the same indent."""
    return 2 * len(_indent(line)) + line.lstrip().startswith("-")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def problems_text(problems: Iterable[Problem]) -> str:
    """What `forebay check` prints about these problems on a terminal, without its last line."""
    return "\n".join(line for problem in problems for line in (str(problem), *caret_lines(problem)))
