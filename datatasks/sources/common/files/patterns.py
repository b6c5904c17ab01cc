"""Path patterns: globs, and paths that name the time of their rows (`date={date}/*.parquet`).

Pure text work without storage or Arrow, so that declarations can be checked with it. Regular
expressions use only what Python's `re` and RE2 (Arrow) both know.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product

from forebay.system.names import shown

_MAGIC = re.compile(r"[*?\[]")
_GLOB = r"\*\*/|\*\*?|\?|\[.[^\]]*\]|."
_TOKEN = re.compile(_GLOB, re.DOTALL)
_TIME_TOKEN = re.compile(f"%(?P<short>-(?=[mdH]))?(?P<letter>.?)|{_GLOB}", re.DOTALL)
# `%-m` is a number with or without a leading zero; not beside what could be part of the number.
_CROWDED = re.compile(
    r"(?:(?<=[0-9*?\]])|(?<=%[YmdH])|(?<=%-[mdH]))%-([mdH])|%-([mdH])(?=[0-9*?\[%])"
)
# `**/`: keys of buckets may have empty folders.
_WILD = {"**/": "(?:[^/]*/)*", "**": r"(?s:.*)", "*": "[^/]*", "?": "[^/]"}
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_FORMATS = {"date": "%Y-%m-%d", "year": "%Y", "month": "%-m", "day": "%-d", "hour": "%-H"}
_DIGITS = {"Y": 4, "m": 2, "d": 2, "H": 2}


def has_magic(text: str) -> bool:
    return _MAGIC.search(text) is not None


def split_root(path: str) -> tuple[str, str]:
    """A path's last folder without glob characters, and the pattern below it ("" for none)."""
    if not has_magic(path):
        return path, ""
    parts = path.split("/")
    first = next(index for index, part in enumerate(parts) if has_magic(part))
    return "/".join(parts[:first]) or ("/" if path.startswith("/") else ""), "/".join(parts[first:])


def glob_regex(pattern: str) -> str:
    """A glob as a regular expression: `*` and `?` stay in one folder, `**/` crosses folders."""
    return _TOKEN.sub(_token_regex, pattern)


def require_regex(pattern: str, regex: str) -> None:
    """See that a pattern of paths can be searched for.

    Raises:
        ValueError: when it cannot.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of what other versions of `re` may mean
            re.compile(regex)
    except re.error as error:
        raise ValueError(f"{shown(pattern)} is not a path pattern: {error}") from error


def _token_regex(match: re.Match[str]) -> str:
    token = match[0]
    if token.startswith("[") and len(token) > 1:
        inner = token[1:-1].replace("\\", "\\\\")
        return ("[^" + inner[1:] if inner.startswith("!") else "[" + inner) + "]"
    return _WILD.get(token) or re.escape(token)


@dataclass(frozen=True)
class TimePattern:
    """A path pattern that says which hour or day (UTC) the rows of a file belong to.

    regex: the whole relative path, with the groups Y, m, d and perhaps H.
    folder: the part before the last `/`, still in strftime and glob form ("" for none).
    step: how much time one path value covers.
    """

    regex: str
    folder: str
    step: timedelta

    def folders(self, start: datetime, end: datetime) -> list[list[str]]:
        """The folders of all pieces that overlap [start, end), in order: each as it may be written.

        The first way has all leading zeros.
        """
        first, *rest = self.folder.split("%-")
        ways = product(("%", "%-"), repeat=len(rest))
        forms = [first + "".join(map("".join, zip(way, rest, strict=True))) for way in ways]
        at = start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        if self.step == timedelta(days=1):
            at = at.replace(hour=0)
        found: dict[str, list[str]] = {}
        while at < end:
            ways_of_it = list(dict.fromkeys(at.strftime(form) for form in forms))
            found[ways_of_it[0]] = ways_of_it
            at += self.step
        return list(found.values())


def time_pattern(text: str) -> TimePattern:
    """Read a pattern with the placeholders {date}, {year}, {month}, {day}, {hour}, {date:FORMAT}.

    FORMAT is strftime with %Y, %m, %d and %H only. {month}, {day} and {hour} need no leading zero
    (`month=3`), unless a digit, a wildcard or another placeholder is beside them.

    Raises:
        ValueError: for an unknown placeholder, or when year, month and day are not all named.
    """
    form = _CROWDED.sub(r"%\1\2", _PLACEHOLDER.sub(_strftime, text.strip("/")))
    regex, seen = "", set()
    for match in _TIME_TOKEN.finditer(form):
        letter = match["letter"]
        if letter is None:
            regex += _token_regex(match)
            continue
        if letter not in _DIGITS:
            raise ValueError(f"'%{letter}' is not known here (use %Y, %m, %d and %H)")
        least = "1," if match["short"] else ""
        digits = rf"[0-9]{{{least}{_DIGITS[letter]}}}"
        regex += digits if letter in seen else f"(?P<{letter}>{digits})"
        seen.add(letter)
    if not {"Y", "m", "d"} <= seen:
        raise ValueError(
            f"{shown(text)} does not name a whole date: use {{date}}, or {{year}}, {{month}}, "
            f"{{day}}"
        )
    require_regex(text, regex)
    folder = form.rpartition("/")[0]
    return TimePattern(regex, folder, timedelta(hours=1) if "H" in seen else timedelta(days=1))


def _strftime(match: re.Match[str]) -> str:
    name, _, form = match[1].partition(":")
    if name in {"date", "time"} and form:
        return form
    if name in _FORMATS and not form:
        return _FORMATS[name]
    known = ", ".join(f"{{{each}}}" for each in _FORMATS)
    raise ValueError(f"unknown placeholder {match[0]} (known: {known}, {{date:%Y%m%d}})")
