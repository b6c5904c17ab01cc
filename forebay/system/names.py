"""Texts from outside: names that become paths are checked, and errors quote any text safely.

Code that turns a pipeline, a line, a window or a job id into a path checks it here first, and so
does code that takes a name from a command line, a file name or a YAML key.
"""

from __future__ import annotations

import re

from forebay.errors import UsageError

NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,62}$"
NAME_RULE = "a name is a letter followed by up to 62 letters, digits, _ or -"
WINDOW_KEY_RULE = "not a window: write 2026-03-01, or 2026-03-01T07 for hourly windows"
ONE_LINE_RULE = "write one line of 1 to 1,000 printable characters"
# A folder's name, and part of environments: no path separators, no leading dot.
JOB_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.+=@-]{0,199}$"
_WINDOW_KEY = re.compile(r"[0-9][0-9A-Za-z_-]{0,23}")
_TEXT_MAX, _SHOWN_MAX = 1_000, 80


def is_name(text: str) -> bool:
    """Whether a text may be the name of a pipeline, a line, a source or a stream."""
    # Not `match`: there, `$` also matches before a newline at the end.
    return re.fullmatch(NAME_PATTERN, text) is not None


def is_window_key(text: str) -> bool:
    """Whether a text has the form of a window's key, or a warm start's."""
    return _WINDOW_KEY.fullmatch(text) is not None


def is_job_id(text: str) -> bool:
    return re.fullmatch(JOB_ID_PATTERN, text) is not None


def is_one_line(text: str) -> bool:
    """Whether a database and a log can hold a text unchanged."""
    return 0 < len(text) <= _TEXT_MAX and text.isprintable()


def require_name(what: str, text: str) -> str:
    """The text itself, if it is a name. what: a word for the error.

    Raises:
        UsageError: when it is not.
    """
    if not is_name(text):
        raise UsageError(f"{what} {shown(text)}: {NAME_RULE}")
    return text


def require_window_key(text: str) -> str:
    """The text itself, if it has the form of a window's key.

    Raises:
        UsageError: when it does not.
    """
    if not is_window_key(text):
        raise UsageError(f"window {shown(text)}: {WINDOW_KEY_RULE}")
    return text


def require_job_id(text: str) -> str:
    """The text itself, if it is a job's id.

    Raises:
        UsageError: when it is not.
    """
    if not is_job_id(text):
        raise UsageError(f"job {shown(text)}: no job has such an id")
    return text


def shown(text: str, length: int = _SHOWN_MAX) -> str:
    """A text quoted for an error: in one line, shortened, without control characters."""
    quoted = ascii(text) if not text.isprintable() else repr(text)
    return quoted if len(quoted) <= length else f"{quoted[: length - 3]}..."
