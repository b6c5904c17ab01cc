"""Pydantic's errors as problems: the thing, its value, the place in YAML and what to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from forebay.config.yaml.keys import dotted
from forebay.config.yaml.positions import Document, KeyPath
from forebay.config.yaml.problems import PROBLEMS_MAX, Problem
from forebay.config.yaml.spelling import nearest
from forebay.system.output.redaction import is_secret_name

AnyModel = TypeVar("AnyModel", bound=BaseModel)
# More than are shown for one file, since each branch of a union reports its own errors.
_FAULTS_MAX = 10 * PROBLEMS_MAX

# What pydantic expected, in YAML terms; by error type, or by its first part.
_EXPECTED = {
    "string": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "finite_number": "a finite number",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a mapping",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_YAML_TYPES: dict[type, str] = {
    bool: "true/false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


# Types as other tools call them.
_TYPES = {"datetime": "timestamp", "date": "timestamp", "integer": "int", "long": "int"}
_TYPES |= {"double": "float", "decimal": "float", "text": "string", "varchar": "string"}


@dataclass(frozen=True)
class _Fault:
    """One pydantic error, its path in the value and the union branches it belongs to.

    branches: the path of each union and its branch, outermost first.
    """

    path: KeyPath
    branches: tuple[tuple[KeyPath, str | int], ...]
    error: ErrorDetails


def validate(
    model: type[AnyModel], value: dict[str, Any], document: Document, base: KeyPath = ()
) -> tuple[AnyModel | None, list[Problem]]:
    """Build a model from a value below `base` in the document."""
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        details = error.errors(include_url=False)[:_FAULTS_MAX]
        faults = [_fault(each, value) for each in details]
        writer = _Writer(document, base)
        return None, [writer.problem(group) for group in _one_branch_each(faults)]


def _fault(error: ErrorDetails, value: Any) -> _Fault:  # noqa: ANN401
    """Split pydantic's location into the path in YAML and the names of union branches."""
    path: list[str | int] = []
    branches: list[tuple[KeyPath, str | int]] = []
    for number, part in enumerate(error["loc"]):
        last = number == len(error["loc"]) - 1
        if _has(value, part):
            value = value[part]
        elif not (last and error["type"] == "missing"):
            if part != "[key]":
                branches.append((tuple(path), part))
            continue
        path.append(part)
    return _Fault(tuple(path), tuple(branches), error)


def _has(value: object, part: str | int) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _one_branch_each(faults: Iterable[_Fault]) -> Iterator[list[_Fault]]:
    """Keep the branch of each union that the value matched most deeply; if none stands out, all."""
    unions: dict[KeyPath | None, list[_Fault]] = defaultdict(list)
    for fault in faults:
        unions[next((place for place, _ in fault.branches), None)].append(fault)
    for union, group in unions.items():
        deepest = max(group, key=lambda fault: len(fault.path))
        if union is None:
            yield from ([fault] for fault in group)
        elif deepest.path == union:
            yield group
        else:
            nearest_branch, *_ = deepest.branches
            yield from _one_branch_each(
                replace(fault, branches=tuple(inner))
                for fault in group
                for branch, *inner in [fault.branches]
                if branch == nearest_branch
            )


class _Writer:
    def __init__(self, document: Document, base: KeyPath) -> None:
        self._document = document
        self._base = base

    def problem(self, group: Sequence[_Fault]) -> Problem:
        fault = group[0]
        path = (*self._base, *fault.path)
        kind = fault.error["type"]
        if kind == "missing":
            return self._missing(path)
        if kind == "union_tag_not_found":
            return self._missing((*path, _tag(fault)))
        if kind in {"literal_error", "enum", "union_tag_invalid"} and _is_choice(group):
            return self._choice(path, fault)
        expected = _expected_of(group)
        if expected:
            return self._wrong_type(path, fault, _either(expected))
        return self._wrong_value(path, fault)

    def _missing(self, path: KeyPath) -> Problem:
        parent = dotted(path[:-1])
        where = f" in {parent}" if parent else ""
        message = f"key {path[-1]!r} is missing{where}: add it"
        return self._document.problem(path[:-1], "missing-key", message, at_key=True)

    def _choice(self, path: KeyPath, fault: _Fault) -> Problem:
        context = fault.error["ctx"]
        if fault.error["type"] == "union_tag_invalid":
            tag = _tag(fault)
            path, given, listed = (*path, tag), context["tag"], context["expected_tags"]
        else:
            given, listed = fault.error["input"], context["expected"]
        choices = [text.strip("'") for text in str(listed).replace(" or ", ", ").split(", ")]
        message = (
            f"{self._name(path)}: {self._shown(path, given)} is not one of {', '.join(choices)}"
        )
        text = given if isinstance(given, str) else ""
        meant = _TYPES.get(text.casefold(), "")
        hint = meant if meant in choices else nearest(text, choices)
        return self._document.problem(path, "wrong-value", message, hint)

    def _wrong_value(self, path: KeyPath, fault: _Fault) -> Problem:
        kind, context = fault.error["type"], fault.error.get("ctx", {})
        if kind in _BOUNDS:
            key, words = _BOUNDS[kind]
            rule = f"{self._shown(path, fault.error['input'])} must be {words} {context[key]}"
        elif kind == "string_too_short":
            rule = "the text is empty"
        elif kind == "too_short":
            rule = (
                f"needs at least {context['min_length']}, but there are {context['actual_length']}"
            )
        elif kind in {"value_error", "assertion_error"}:
            rule = str(context["error"])
        else:
            rule = fault.error["msg"]
        raw, given = self._document.raw.get(path), fault.error["input"]
        if raw and "${" in raw and isinstance(given, str) and given:
            rule = rule.replace(given, raw)  # values from the environment are never shown
        return self._document.problem(path, "wrong-value", f"{self._name(path)}: {rule}")

    def _wrong_type(self, path: KeyPath, fault: _Fault, expected: str) -> Problem:
        given, raw = fault.error["input"], self._document.raw.get(path)
        what = _YAML_TYPES.get(type(given), type(given).__name__)
        # What was given in place of the expected value may contain a misplaced secret.
        is_text = isinstance(given, str) and expected == _EXPECTED["dict"]
        is_secret = any(is_secret_name(str(part)) for part in path)
        is_shown = not (is_text or is_secret or isinstance(given, list | dict))
        shown = self._shown(path, given)
        if given is not None:
            shown = f"{shown} ({what})" if is_shown else what
        message = f"{self._name(path)}: {expected} is expected, not {shown}"
        hint = ""
        if "text" in expected and raw and not isinstance(given, str):
            message += "; YAML reads it that way unless it is quoted"
            hint = "" if is_secret else f'"{raw}"'
        elif expected == _EXPECTED["list"] and isinstance(given, str):
            hint = f"[{raw}]"
        return self._document.problem(path, "wrong-type", message, hint)

    def _name(self, path: KeyPath) -> str:
        return dotted(path) or "this file"

    def _shown(self, path: KeyPath, value: object) -> str:
        """The value as written, so that values from the environment are never shown."""
        if value is None:
            return "nothing"
        raw = self._document.raw.get(path)
        own = raw is None or (isinstance(value, str) and "${" not in raw)
        text = repr(value) if own else str(raw)
        return text if len(text) <= 80 else text[:77] + "..."


def _is_choice(group: Sequence[_Fault]) -> bool:
    """Whether one of a few words was expected, or a mapping, and another word was given."""
    first, *others = group
    is_text = isinstance(first.error["input"], str)
    return not others or (is_text and all(each.error["type"] == "model_type" for each in others))


def _expected(kind: str) -> str:
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    first, _, rest = kind.partition("_")
    of_type = rest in {"type", "attributes_type", "parsing", "from_float"}
    return _EXPECTED.get(first, "") if of_type else ""


def _expected_of(group: Sequence[_Fault]) -> list[str]:
    """What was expected instead, if the type is all that is wrong."""
    found = [_expected(fault.error["type"]) for fault in group]
    if len(group) > 1:
        found = [text or fault.error["msg"] for text, fault in zip(found, group, strict=True)]
    return [text for text in dict.fromkeys(found) if text]


def _either(texts: Sequence[str]) -> str:
    return " or ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]


def _tag(fault: _Fault) -> str:
    return str(fault.error["ctx"]["discriminator"]).strip("'")
