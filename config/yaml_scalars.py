"""Plain values of YAML scalars, and values that are rejected although YAML allows them.

YAML 1.1 reads 0755 as 493 and 12:30 as 750, which is rarely what was meant.
"""

from __future__ import annotations

import re
from typing import Protocol

import yaml

_TAG = "tag:yaml.org,2002:"
TEXT_TAGS = {_TAG + "str", _TAG + "value"}
SCALAR_TAGS = {_TAG + kind for kind in ("null", "bool", "int", "float", "timestamp")}
TEXT_MAX = 10_000
_NUMBER_MAX = 60
_INT_MAX = 2**63
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
# A surrogate cannot be written as UTF-8, and U+0000 ends a path.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class Constructor(Protocol):
    """Makes plain values, as PyYAML's SafeLoader does."""

    def construct_object(self, node: yaml.Node) -> object:
        """The value of a node."""


def plain_value(constructor: Constructor, node: yaml.ScalarNode) -> object:
    """The value of a scalar with one of SCALAR_TAGS.

    Raises:
        ValueError: when there is none, or it is unlikely to be meant; it says what to do.
    """
    kind, text = node.tag.removeprefix(_TAG), node.value
    if kind in {"int", "float"} and len(text) > _NUMBER_MAX:
        raise ValueError(f"a number of {len(text):,} characters is too long: correct or quote it")
    try:
        value = constructor.construct_object(node)
    except (ValueError, KeyError, OverflowError) as error:
        raise ValueError(
            f"{text[:_NUMBER_MAX]} looks like a {kind} but is not one ({error}): correct or quote "
            "it"
        ) from error
    if kind in {"int", "float"} and ":" in text:
        raise ValueError(f"unquoted {text} is {value} in YAML (base 60): write that, or quote it")
    if isinstance(value, int) and not isinstance(value, bool):
        if _OCTAL.fullmatch(text):
            raise ValueError(f"unquoted {text} is {value} in YAML (octal): write that, or quote it")
        if not -_INT_MAX <= value < _INT_MAX:
            raise ValueError(f"{text} has more than 64 bits: correct or quote it")
    return value


def text_fault(text: str) -> str:
    """Why a text cannot be used, as a sentence; empty if it can."""
    if len(text) > TEXT_MAX:
        return f"a text of {len(text):,} characters is too long: at most {TEXT_MAX:,}"
    odd = _NO_TEXT.search(text)
    return f"a text with U+{ord(odd[0]):04X} cannot be used: remove it" if odd else ""
