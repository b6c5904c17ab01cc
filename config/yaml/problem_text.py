"""Problems as users see them: one line each, then the source line with a mark below the place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from forebay.config.yaml.files import read_bytes
from forebay.config.yaml.problems import Problem
from forebay.system.output.redaction import HIDDEN, is_secret_name, redacted
from forebay.system.output.text import around

_COLUMNS_MAX = 300
# So much of a line is searched for secrets before it is cut.
_READ_MAX = 4096
# Where no terminal says how wide it is.
_WIDTH = 100
_INDENT = "    "
_LINES_ABOVE_MAX = 1000
_KEY = re.compile(r"(?P<name>[\w.\-]{1,200})['\"]?\s{0,9}[:=,]")
# Followed at most by what starts a multi-line text, a list or a mapping.
_LAST_KEY = re.compile(r"(?P<name>[\w.\-]{1,200})['\"]?\s{0,9}:(?:\s*[|>\[{&!].{0,200})?\s*$")


def caret_lines(problem: Problem, width: int = _WIDTH) -> list[str]:
    """The source line and a mark below the place; nothing if they cannot be shown.

    width: how many columns both may take; a longer line is cut around the place.
    """
    try:
        text = read_bytes(Path(problem.file)).decode("utf-8-sig", errors="replace")
    except OSError:
        return []
    whole = text.splitlines()
    index, place = problem.line - 1, problem.column - 1
    if index >= len(whole) or place >= _COLUMNS_MAX:
        return []
    # Before the line is cut: a filter does not recognise half a secret.
    read = whole[index][:_READ_MAX]
    line = redacted(read)
    place = _moved(place, read, line)
    lines = [each[:_COLUMNS_MAX] for each in (*whole[:index], line)]
    shown_line = _without_secrets(lines, index)
    if shown_line != lines[index]:
        place = min(place, len(shown_line) - len(HIDDEN))
    elif len(line) > _COLUMNS_MAX:
        shown_line += "…"
    shown, before = around(shown_line, place, width - len(_INDENT))
    return [f"{_INDENT}{shown}", f"{_INDENT}{' ' * before}^"]


def _moved(place: int, old: str, new: str) -> int:
    """Where a place of a line is once a part of the line was replaced."""
    same_before = _same(old, new)
    if place <= same_before:
        return place
    after = len(old) - place
    same_after = _same(old[::-1], new[::-1])
    return len(new) - after if after <= same_after else same_before


def _same(one: str, other: str) -> int:
    """How many of the first characters are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


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
