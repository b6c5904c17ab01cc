"""`${NAME}` and `${NAME:-default}` in YAML texts, replaced from the environment.

It happens after YAML is read, in texts only and never in keys: what comes from the environment is
text, and then validated like text. `$${` stands for a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from forebay.config.problems import Problem
from forebay.config.spelling import nearest
from forebay.config.yaml_positions import Document, KeyPath

_VARIABLE = re.compile(r"\$(\$?)\{(?:([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\})?")


def names_of(value: object) -> frozenset[str]:
    """The names of the environment that a declaration refers to, as it is written in YAML.

    value: a whole declaration or a part of it (`options` of a source, say), with nothing filled in
        yet. A name with a default counts; an escaped one, and what is in a key, does not.
    """
    if isinstance(value, dict):
        return frozenset[str]().union(*map(names_of, value.values()))
    if isinstance(value, list):
        return frozenset[str]().union(*map(names_of, value))
    if not isinstance(value, str):
        return frozenset()
    found = _VARIABLE.finditer(value)
    return frozenset(match[2] for match in found if match[2] and not match[1])


def fill_in(document: Document, environ: Mapping[str, str]) -> list[Problem]:
    """Replace variables in every text of the document; name those that are not set."""
    problems: list[Problem] = []

    def text(value: str, path: KeyPath) -> str:
        def replaced(match: re.Match[str]) -> str:
            escaped, name, has_default, default = match.groups()
            if escaped:
                return match[0][1:]
            if name is None:
                message = f"{value!r}: a variable is written ${{NAME}} or ${{NAME:-default}}"
                problems.append(document.problem(path, "variable", message))
                return match[0]
            if environ.get(name) or (name in environ and not has_default):
                return environ[name]
            if has_default:
                return default or ""
            message = f"variable {name} is not set: set it, or write ${{{name}:-default}}"
            problems.append(
                document.problem(path, "variable-not-set", message, nearest(name, environ))
            )
            return match[0]

        return _VARIABLE.sub(replaced, value)

    def walk(value: Any, path: KeyPath) -> Any:  # noqa: ANN401 - a YAML value
        if isinstance(value, dict):
            return {key: walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, (*path, index)) for index, item in enumerate(value)]
        return text(value, path) if isinstance(value, str) else value

    document.value = walk(document.value, ())
    return problems
