"""YAML with positions: plain values, and the line and column of every key and value.

Tags and duplicate keys are errors; anchors and merge keys work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import Resolver
from yaml.scanner import Scanner

from forebay.config.yaml.problems import PROBLEMS_MAX, Problem

# libyaml does the parsing if PyYAML was built with it; it takes a tenth of the time.

# Per text, counting what anchors and merge keys repeat.
NODES_MAX = 50_000
DEPTH_MAX = 32


class _PurePython(Reader, Scanner, Parser):
    """The same parser in pure Python, for PyYAML without libyaml."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


# The parser that PyYAML's own loader is based on.
_Parser: Any = yaml.CSafeLoader.__mro__[1] if yaml.__with_libyaml__ else _PurePython


class NodeLoader(Composer, _Parser, SafeConstructor, Resolver):  # type: ignore[misc]
    """Nodes of a text, and plain values of scalars, by the rules of PyYAML's SafeLoader."""

    def __init__(self, text: str) -> None:
        """Raises yaml.YAMLError when the text has characters that YAML does not allow."""
        _Parser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401
        """Raises yaml.MarkedYAMLError at more nodes than NODES_MAX or deeper than DEPTH_MAX."""
        self._nodes += 1
        if self._nodes > NODES_MAX:
            self._refuse(f"the file has more than {NODES_MAX:,} keys and values")
        if self._depth == DEPTH_MAX:
            self._refuse(f"lists and mappings are nested more than {DEPTH_MAX} deep")
        self._depth += 1
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
        finally:
            self._depth -= 1
        return node

    def _refuse(self, problem: str) -> None:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.peek_event().start_mark)


# YAML 1.1 reads 0755 as 493 and 12:30 as 750, which is rarely what was meant.

_TAG = "tag:yaml.org,2002:"
TEXT_TAGS = {_TAG + "str", _TAG + "value"}
SCALAR_TAGS = {_TAG + kind for kind in ("null", "bool", "int", "float", "timestamp")}
TEXT_MAX = 10_000
_NUMBER_MAX = 60
_INT_MAX = 2**63
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
# A surrogate cannot be written as UTF-8, and U+0000 ends a path.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def plain_value(constructor: SafeConstructor, node: yaml.ScalarNode) -> object:
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


KeyPath = tuple[str | int, ...]
KEY_MAX = 200
_MESSAGE_MAX, _HINT_MAX = 1_000, 100
# Where libyaml stops: between both characters.
_VARIABLE = re.compile(r"(?<=\$)\{(\w{1,200})(\})?")
_NAMED = re.compile(r"(alias|anchor|tag handle) '[^']*'")


class Place(NamedTuple):
    """Line and column, both counted from 1."""

    line: int
    column: int


@dataclass
class Document:
    """One YAML file: its value, the places of keys and values, and scalars as they were written.

    written: the value before environment variables were filled in.
    """

    file: str
    value: Any = None
    written: Any = None
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    values: dict[KeyPath, Place] = field(default_factory=dict)
    raw: dict[KeyPath, str] = field(default_factory=dict)

    def key_place(self, path: KeyPath) -> Place:
        """Where the key is; for a list item, the item; for a missing key, its parent."""
        for end in range(len(path), 0, -1):
            place = self.keys.get(path[:end]) or self.values.get(path[:end])
            if place is not None:
                return place
        return self.values.get((), Place(1, 1))

    def value_place(self, path: KeyPath) -> Place:
        """Where the value is; for a missing value, the key of its parent."""
        return self.values.get(path) or self.key_place(path)

    def problem(
        self, path: KeyPath, code: str, message: str, hint: str = "", *, at_key: bool = False
    ) -> Problem:
        place = self.key_place(path) if at_key else self.value_place(path)
        return Problem(self.file, place.line, place.column, code, *_bounded(message, hint))

    def rename(self, parent: KeyPath, old: str, new: str) -> None:
        """Move the places below `parent.old` to `parent.new`."""
        source, target = (*parent, old), (*parent, new)
        for places in (self.keys, self.values, self.raw):
            _move(places, source, target)


def _move(places: dict[KeyPath, Any], source: KeyPath, target: KeyPath) -> None:
    for path in [path for path in places if path[: len(source)] == source]:
        places[target + path[len(source) :]] = places.pop(path)


def _bounded(message: str, hint: str) -> tuple[str, str]:
    """Message and hint at a readable length; a hint that is too long is dropped."""
    if len(message) > _MESSAGE_MAX:
        message = f"{message[: _MESSAGE_MAX - 3]}..."
    return message, hint if len(hint) <= _HINT_MAX else ""


def read_document(text: str, file: str) -> tuple[Document | None, list[Problem]]:
    """Read one YAML mapping. Without a usable mapping the document is None."""
    odd = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if odd is not None:
        return None, [_character_problem(text, odd.start(), file)]
    loader: NodeLoader | None = None
    try:
        loader = NodeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None, [Problem(file, 1, 1, "empty-file", "the file is empty")]
        reader = _Reader(Document(file), loader)
        reader.document.value = reader.read(node, (), ())
    except yaml.MarkedYAMLError as error:
        return None, [_syntax_problem(error, text, file)]
    finally:
        if loader is not None:
            loader.dispose()
    document = reader.document
    if not isinstance(document.value, dict) and not reader.problems:
        given = {list: "a list", str: "text", type(None): "nothing"}
        what = given.get(type(document.value), "a single value")
        message = f"a mapping (key: value) is expected, not {what}"
        reader.problems.append(document.problem((), "not-a-mapping", message))
    return (document if isinstance(document.value, dict) else None), reader.problems


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    parts = [part for part in (error.context, error.problem) if part]
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        parts = ["a tab is not allowed here: indent with spaces"]
    if mark is not None and (variable := _VARIABLE.match(text, mark.index)):
        message = "inside {} and [] a value with a variable has to be in quotes"
        hint = f'"${variable[0]}"' if variable[2] else ""  # a default may be a secret
        return Problem(file, line, column, "syntax", *_bounded(message, hint))
    # A password that begins with * or & is parsed as the name of an alias or an anchor.
    told = _NAMED.sub(r"\g<1>", "this is not YAML: " + ", ".join(parts))
    message, _ = _bounded(told, "")
    return Problem(file, line, column, "syntax", message)


def _character_problem(text: str, at: int, file: str) -> Problem:
    line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    message = f"this is not YAML: character U+{ord(text[at]):04X} is not allowed"
    return Problem(file, line, column, "syntax", message)


class _Reader:
    def __init__(self, document: Document, loader: NodeLoader) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self._loader = loader
        self._nodes_left = NODES_MAX

    def read(self, node: yaml.Node, path: KeyPath, above: tuple[int, ...]) -> Any:  # noqa: ANN401
        """The plain value of a node. `above` holds the enclosing nodes, to detect anchor cycles."""
        self._spend(node)
        if id(node) in above:
            raise yaml.MarkedYAMLError(
                problem="an anchor contains itself", problem_mark=node.start_mark
            )
        self.document.values[path] = _place(node)
        inside = (*above, id(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [
                self.read(item, (*path, index), inside) for index, item in enumerate(node.value)
            ]
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, path, inside)
        return self._tagged(node)

    def _mapping(
        self, node: yaml.MappingNode, path: KeyPath, inside: tuple[int, ...]
    ) -> dict[str, Any]:
        value: dict[str, Any] = {}
        own: dict[str, Place] = {}
        for key_node, value_node in self._pairs(node):
            key = self._key(key_node)
            place = _place(key_node)
            if key in own:
                self._report(
                    key_node,
                    "duplicate-key",
                    f"key {key!r} appears twice, first on line {own[key].line}: remove one",
                )
                continue
            own[key] = place
            self.document.keys[(*path, key)] = place
            value[key] = self.read(value_node, (*path, key), inside)
        for base in self._merged(node):
            for key, item in self._merge_pairs(base, inside):
                if key not in value:
                    self.document.keys[(*path, key)] = _place(item)
                    value[key] = self.read(item, (*path, key), inside)
        return value

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        return (pair for pair in node.value if pair[0].tag != _TAG + "merge")

    def _merged(self, node: yaml.MappingNode) -> Iterator[yaml.MappingNode]:
        for key, value in node.value:
            if key.tag != _TAG + "merge":
                continue
            bases = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for base in bases:
                if isinstance(base, yaml.MappingNode):
                    yield base
                else:
                    self._report(base, "syntax", "<< merges mappings, and this is not one")

    def _merge_pairs(
        self, base: yaml.MappingNode, inside: tuple[int, ...]
    ) -> Iterator[tuple[str, yaml.Node]]:
        self._spend(base)
        if id(base) in inside:
            raise yaml.MarkedYAMLError(
                problem="an anchor contains itself", problem_mark=base.start_mark
            )
        for key, value in self._pairs(base):
            self._spend(key)
            yield self._key(key), value
        for deeper in self._merged(base):
            yield from self._merge_pairs(deeper, (*inside, id(base)))

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=node.start_mark)
        if len(node.value) > KEY_MAX or text_fault(node.value):
            problem = text_fault(node.value) or f"a key has at most {KEY_MAX} characters"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        if node.tag not in TEXT_TAGS:
            self._report(
                node,
                "key-not-text",
                f"unquoted {node.value} is not text in YAML: put the key in quotes",
                f'"{node.value}"',
            )
        return str(node.value)

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:  # noqa: ANN401
        fault = text_fault(node.value)
        if fault:
            self._report(node, "text", fault)
            return ""
        self.document.raw[path] = node.value
        if node.tag in TEXT_TAGS:
            return node.value
        if node.tag not in SCALAR_TAGS:
            return self._tagged(node)
        try:
            return plain_value(self._loader, node)
        except ValueError as error:
            self._report(node, "syntax", str(error), f'"{node.value}"')
            return node.value

    def _spend(self, node: yaml.Node) -> None:
        """Count one more key or value; repeated ones count each time."""
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise yaml.MarkedYAMLError(
                problem=f"anchors and merge keys repeat more than {NODES_MAX:,} keys and values",
                problem_mark=node.start_mark,
            )

    def _tagged(self, node: yaml.Node) -> None:
        # It is not shown: a password that begins with ! is parsed as a tag.
        message = "tags are not allowed: write the plain value, in quotes if it begins with !"
        self._report(node, "tag", message)

    def _report(self, node: yaml.Node, code: str, message: str, hint: str = "") -> None:
        if len(self.problems) > PROBLEMS_MAX:
            return  # more than are shown already, and each one takes time
        place = _place(node)
        bounded = _bounded(message, hint)
        self.problems.append(Problem(self.document.file, *place, code, *bounded))


def _place(node: yaml.Node) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)
