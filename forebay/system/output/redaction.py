"""Secrets are shown nowhere: one filter for every line, error and report that leaves a process.

It knows three things, wherever a text comes from: values that this process was told to hide, the
password in an address (`scheme://user:password@host`), and the value of a key whose name says that
it is a secret (`password=…`, `'s3.secret-access-key': '…'`, `&token=…`). A hidden value is shown as
the reference that it came from (`${NAME}`), everything else as `***`.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TextIO, cast
from urllib.parse import quote, quote_plus, unquote

from pydantic import AfterValidator

# Shorter ones are part of too many words, and are no real secrets.
SHORTEST = 6
_LINE = 16
HIDDEN = "***"
_KEY = (
    r"(?:password|passwd|passphrase|secret|token|credential|authorization|signature"
    r"|(?:api|access|account|private|shared|signing|encryption|fernet)[-_.]?key)"
)
_SECRET_NAME = re.compile(_KEY, re.IGNORECASE)
# Bounded, so that the time to search grows only linearly with a text's length.
_NAME = rf"[\w.\-]{{0,64}}{_KEY}[\w.\-]{{0,64}}"
# A password may contain characters that should have been encoded, so it ends at the last @; what
# looks like a port and a path is not a password.
_ADDRESS = re.compile(
    r"(?P<before>\b[a-z][a-z0-9+.\-]{0,32}://[^\s/:@'\"]{0,256}:)"
    r"(?!\d{1,5}(?:[/?#]|$))(?!\$\{\w+\}@)[^\s'\"<>]{0,2048}(?P<after>@)",
    re.IGNORECASE,
)
# `***`, `${NAME}` and empty values stay as they are.
_VALUE = r"(?!\*\*\*|\$\{)"
_PAIR = re.compile(
    rf"(?P<before>\b{_NAME}=)(?:(?P<quote>\\?['\"]){_VALUE}.{{0,8192}}?(?P=quote)|{_VALUE}[^\s&,;'\")\]}}\\]+)",
    re.IGNORECASE,
)
_ENTRY = re.compile(
    rf"(?P<before>(?P<mark>\\?['\"]){_NAME}(?P=mark)\s*:\s*b?(?P<quote>\\?['\"])){_VALUE}.{{1,8192}}?(?P=quote)",
    re.IGNORECASE,
)
# What says where something is, but not how to get in.
_PLAIN = re.compile(
    r"[+-]?[\d.,:_TZ+\-]+[smhd]?"  # numbers, durations, instants
    r"|(?:[\w.\-]+:\d{1,5})(?:,[\w.\-]+:\d{1,5})*"  # host:port of servers
    r"|true|false|none|null|localhost",
    re.IGNORECASE,
)
_PLACE = re.compile(r"[a-z][a-z0-9+.\-]*://[^\s?]*", re.IGNORECASE)


class _Hidden:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._shown: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._knows_environment = False

    def unlock(self) -> None:
        self._lock = threading.RLock()

    def add(self, value: str, shown: str) -> None:
        """Hide a value in all forms in which it may be written."""
        with self._lock:
            new = {form: shown for form in _forms(value) if form not in self._shown}
            if new:
                self._shown |= new
                self._pattern = None

    def values(self) -> tuple[str, ...]:
        with self._lock:
            self._look_at_environment()
            return tuple(self._shown)

    def _look_at_environment(self) -> None:
        if not self._knows_environment:
            self._knows_environment = True
            hide_environment(os.environ)

    def replaced(self, text: str) -> str:
        with self._lock:
            self._look_at_environment()
            if self._pattern is None:
                longest_first = sorted(self._shown, key=len, reverse=True)
                self._pattern = re.compile("|".join(map(_bounded, longest_first)) or r"(?!)")
            pattern, shown = self._pattern, self._shown
        return pattern.sub(lambda match: shown[match[0]], text)


def _forms(value: str) -> set[str]:
    """The value as it is, in an address, in JSON and in Python, and each of several long lines."""
    forms = {value, quote(value), quote(value, safe=""), quote_plus(value), unquote(value)}
    forms |= {json.dumps(form)[1:-1] for form in (value, unquote(value))}
    forms |= {repr(value)[1:-1], repr(value.encode(errors="replace"))[2:-1]}
    # Tracebacks and tables indent the lines of a key; its first and last lines are no secret.
    lines = value.splitlines() if "\n" in value else ()
    forms |= {line.strip() for line in lines if len(line) >= _LINE and not line.startswith("---")}
    return {form for form in forms if len(form) >= SHORTEST}


def _bounded(value: str) -> str:
    """A short word is hidden only as a whole word: `events` in `events_by_day` is not hidden."""
    found = re.escape(value)
    return rf"(?<!\w){found}(?!\w)" if re.fullmatch(r"\w{1,11}", value) else found


_hidden = _Hidden()
os.register_at_fork(after_in_child=_hidden.unlock)  # a thread of the parent may have held its lock


def is_secret_name(name: str) -> bool:
    """Whether a key, an option or a variable says by its name that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


def hide(value: str, shown: str = HIDDEN, *, named_secret: bool = False) -> None:
    """Stop showing a value in this process, whoever writes it, and passwords within it.

    Values that are too short to be distinguished from other words are still shown, and so is what
    says where something is: a path, an address without a password, a number.

    shown: what replaces it. named_secret: its name says that it is one; then only a path is shown.
    """
    hide_passwords(value, shown)
    if not _is_plain(value, named_secret=named_secret):
        _hidden.add(value, shown)


def is_secret(value: str, named_secret: bool) -> bool:  # noqa: FBT001 - as of `hide`
    """Whether `hide` would hide a value, or a part of it."""
    return any(_passwords(value)) or (
        named_secret and bool(value) and not _is_plain(value, named_secret=True)
    )


def hide_passwords(address: str, shown: str = HIDDEN) -> None:
    """Stop showing the password in an address in this process; a text without one is ignored."""
    for password in _passwords(address):
        _hidden.add(password, shown)


def hide_environment(environ: Mapping[str, str]) -> None:
    """Hide every variable whose name says that it is a secret, and passwords in addresses."""
    for name, value in environ.items():
        shown = f"${{{name}}}"
        if is_secret_name(name):
            hide(value, shown, named_secret=True)
        else:
            hide_passwords(value, shown)


def _passwords(address: str) -> Iterator[str]:
    """What is a secret in an address: password, and values of secret parameters."""
    if "://" not in address:
        return
    for match in _ADDRESS.finditer(address):
        yield match[0].removeprefix(match["before"])[:-1]
    for match in _PAIR.finditer(address):
        yield match[0].removeprefix(match["before"]).strip("'\"")


def _is_plain(value: str, *, named_secret: bool) -> bool:
    if _leads_somewhere(value):
        return True
    if _PLACE.fullmatch(value) and not any(_passwords(value)):
        return True
    return not named_secret and _PLAIN.fullmatch(value) is not None


def _leads_somewhere(path: str) -> bool:
    """Whether a text is a path: a secret with slashes does not begin with an existing name."""
    if path.startswith(("./", "../", "~/")):
        return True
    first = path.strip("/").partition("/")[0] if path.startswith("/") else path
    return os.path.lexists(f"/{first}" if path.startswith("/") else first)


def hidden_values() -> tuple[str, ...]:
    """What this process was told to hide, for other filters."""
    return _hidden.values()


def redacted(text: str) -> str:
    if len(text) < SHORTEST:
        return text
    text = _hidden.replaced(text)
    if "://" in text:
        text = _ADDRESS.sub(rf"\g<before>{HIDDEN}\g<after>", text)
    if _SECRET_NAME.search(text):
        text = _PAIR.sub(rf"\g<before>{HIDDEN}", text)
        text = _ENTRY.sub(rf"\g<before>{HIDDEN}\g<quote>", text)
    return text


# A text that is stored or sent, and may come from an error.
ShownText = Annotated[str, AfterValidator(redacted)]


class FilteredStream(io.TextIOBase):
    """A text stream that shows no secrets; everything else is delegated to the stream."""

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        self.unfiltered.write(redacted(text))
        return len(text)

    def close(self) -> None:
        """Not ours to close."""

    def flush(self) -> None:
        self.unfiltered.flush()

    def fileno(self) -> int:
        return self.unfiltered.fileno()

    def isatty(self) -> bool:
        return self.unfiltered.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read only, as of any text file
        return self.unfiltered.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.unfiltered.errors

    @property
    def buffer(self) -> Any:  # noqa: ANN401 - as Python's text files have it
        return self.unfiltered.buffer


def filter_output(*, stdout: bool = True) -> None:
    """Filter what this process writes from now on, its log and its tracebacks too.

    stdout: False if it is a result for a program, which has to be exact.
    """
    for name in ("stderr", "stdout") if stdout else ("stderr",):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, FilteredStream):
            setattr(sys, name, cast("TextIO", FilteredStream(stream)))
