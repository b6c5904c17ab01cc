"""`${NAME}` and `${NAME:-default}` in YAML texts, replaced from the environment.

This happens after the YAML is read, in texts only and never in keys: a value from the environment
is text, and is validated as text. `$${` stands for a literal `${`. A declaration is stored as
written (`forebay.config.declared`): each process that needs a value fills it in itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from forebay.config.yaml.keys import dotted
from forebay.config.yaml.positions import Document, KeyPath, text_fault
from forebay.config.yaml.problems import HINTS_MAX, Problem
from forebay.config.yaml.spelling import nearest
from forebay.system.names import shown
from forebay.system.output.redaction import hide, hide_passwords, is_secret, is_secret_name

_VARIABLE = re.compile(r"\$(\$?)\{(?:([A-Za-z_][A-Za-z0-9_]*)(:-([^}]{0,1000}))?\})?")
# The only part of a declaration in which secrets may be written.
OPTIONS = "options"
# Options that say where something is: in their values only a password in an address is secret.
_PLACES = frozenset(
    {"bootstrap", "format", "name", "path", "region", "table", "topic", "type", "warehouse"}
)


def is_reference(text: str) -> bool:
    """Whether a text, as written, contains a variable or an escaped one."""
    return _VARIABLE.search(text) is not None


def names_of(value: object) -> frozenset[str]:
    """Names of the environment variables that a declaration, as written in YAML, refers to.

    value: a whole declaration or a part of it (`options` of a source, say), with nothing filled in
        yet. Names with a default count; escaped ones and those in keys do not.
    """
    found = (_VARIABLE.finditer(text) for _, text in texts_of(value))
    return frozenset(each[2] for text in found for each in text if each[2] and not each[1])


def texts_of(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from texts_of(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts_of(item, (*path, index))
    elif isinstance(value, str):
        yield path, value


def with_leaves(value: Any, change: Callable[[Any, KeyPath], Any], path: KeyPath = ()) -> Any:  # noqa: ANN401 - a YAML value
    """A copy of a value in which all that is neither a mapping nor a list is replaced."""
    if isinstance(value, dict):
        return {key: with_leaves(item, change, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [with_leaves(item, change, (*path, index)) for index, item in enumerate(value)]
    return change(value, path)


def fill_text(text: str, path: KeyPath, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """A text with its variables filled in, and those without a value or a default.

    From now on this process hides values used in options.
    """
    missing: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        escaped, name, has_default, default = match.groups()
        if escaped:
            return match[0][1:]
        if name is None:
            return match[0]
        if environ.get(name) or (name in environ and not has_default):
            _hide(environ[name], name, path)
            return _value(environ, name)
        if has_default:
            return default or ""
        missing.append(name)
        return match[0]

    return _VARIABLE.sub(replaced, text), missing


def _value(environ: Mapping[str, str], name: str) -> str:
    """The value of a variable, with the home folder for `~/` at its beginning.

    A shell does that where it sets a variable; nobody does where a file sets it, for a service or
    a container.
    """
    value = environ[name]
    home = environ.get("HOME", "~")
    is_place = value.startswith("~/") and not is_secret_name(name)
    return f"{home}{value.removeprefix('~')}" if is_place else value


def fill_names(text: str, names: Collection[str], environ: Mapping[str, str]) -> str:
    """Replace some variables of a text permanently; the others stay as written."""

    def replaced(match: re.Match[str]) -> str:
        escaped, name, has_default, default = match.groups()
        if escaped or name not in names:
            return match[0]
        if environ.get(name) or (name in environ and not has_default):
            return _value(environ, name).replace("${", "$${")
        return (default or "").replace("${", "$${") if has_default else match[0]

    return _VARIABLE.sub(replaced, text)


def fill_in(document: Document, environ: Mapping[str, str]) -> list[Problem]:
    problems: list[Problem] = []

    def leaf(value: Any, path: KeyPath) -> Any:  # noqa: ANN401 - a YAML value
        if not isinstance(value, str) or "${" not in value:
            return value
        for match in _VARIABLE.finditer(value):
            if match[2] is None and not match[1]:
                message = f"{shown(value)}: write a variable as ${{NAME}} or ${{NAME:-default}}"
                problems.append(document.problem(path, "variable", message))
        filled, missing = fill_text(value, path, environ)
        for name in missing:
            message = f"variable {name} is not set: set it, or write ${{{name}:-default}}"
            hint = nearest(name, environ) if len(problems) < HINTS_MAX else ""
            problems.append(document.problem(path, "variable-not-set", message, hint))
        problems.extend(
            document.problem(path, "variable", f"variable {name}: {fault}")
            for name in sorted(names_of(value) & environ.keys())
            if (fault := text_fault(environ[name]))
        )
        return filled

    document.written = document.value
    document.value = with_leaves(document.value, leaf)
    return problems


def hide_options(declared: object, environ: Mapping[str, str]) -> None:
    """Hide, in all output of this process, the variables that a source's options refer to.

    declared: the source as written. Variables that this process does not need are hidden too.
    """
    for path, text in texts_of(declared):
        for name in names_of(text) & environ.keys():
            _hide(environ[name], name, path)


def hide_written(declared: object, fields: Collection[str] = ()) -> None:
    """Hide, in all output of this process, secrets written directly in a source's YAML.

    They are searched for below `options` and below mistaken keys, by the names of all enclosing
    keys: an error about a value nested too deeply shows its line.

    fields: keys allowed at the top of the file; what is below them, except `options`, is not
        secret.
    """
    for path, written in texts_of(declared):
        keys = [part for part in path if isinstance(part, str)]
        if not keys or (len(keys) > 1 and keys[0] != OPTIONS and keys[0] in fields):
            continue
        for text in _literals(written):
            if any(map(is_secret_name, keys)):
                hide(text, named_secret=True)
            else:
                hide_passwords(text)


def written_secrets(document: Document) -> Iterator[Problem]:
    """Notes on secrets that a source's options hold as they are: files are copied and committed."""
    for path, written in texts_of(document.written):
        keys = [part for part in path if isinstance(part, str)]
        named = any(map(is_secret_name, keys))
        if keys[:1] == [OPTIONS] and any(is_secret(each, named) for each in _literals(written)):
            variable = re.sub(r"\W+", "_", keys[-1]).upper()
            message = (
                f"{dotted(path)}: a password is written here as plain text: put it into a variable "
                f"of the environment and write ${{{variable}}}, for example"
            )
            yield replace(document.problem(path, "plain-secret", message), severity="note")


def _literals(text: str) -> list[str]:
    """A text, or the defaults of its variables: the rest of it comes from the environment."""
    variables = list(_VARIABLE.finditer(text))
    return [each[4] for each in variables if each[4]] if variables else [text]


def _hide(value: str, name: str, path: KeyPath) -> None:
    if path[:1] != (OPTIONS,):
        return
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    shown = f"${{{name}}}"
    if key in _PLACES:
        hide_passwords(value, shown)
    else:
        hide(value, shown, named_secret=is_secret_name(key) or is_secret_name(name))
