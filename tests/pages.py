"""Writes the pages of docs/, and tables of one, that are made from the code: `make pages`."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from support.manual import manual_page

from forebay.config.schema import json_schema
from forebay.config.specs.registry import installed_kinds
from forebay.mixture.advice.regimes import measured_regimes

Node = Mapping[str, Any]
HEAD = """# Reference: every key of the YAML files

Generated from the schema by `make pages`; [concepts.md](concepts.md) explains the terms. A
**duration** is a whole number with a unit (`s`, `m`, `h` or `d`): `30s`, `15m`, `24h` or `7d`. An
**instant** is a date, `2026-03-01`, or a date and time, `2026-03-01T07:00:00Z`; without a zone it
is UTC. NAME stands for a name of your choice. `forebay check` reports unknown keys and wrong values
with file, line and column, and `forebay schema` prints the same as JSON Schema for editors.
*Primus* is the paper that [learning.md](learning.md#the-mixture) names.
"""
COLUMNS = "| key | type | default | meaning |\n|---|---|---|---|\n"
DURATION = r"^\d+[smhd]$"
NULL = {"type": "null"}
TYPES = {
    "boolean": "`true` or `false`",
    "integer": "integer",
    "number": "number",
    "object": "mapping",
    "string": "text",
}


def reference_page(schema: Node) -> str:
    """schema: of both kinds of file, as `forebay schema` prints it."""
    definitions = schema["$defs"]
    parts = [HEAD, "## Sources: `config/sources/NAME.yaml`\n"]
    source = definitions["SourceSpec"]
    parts.append(_table(_rows(source, "", definitions)))
    for case in source["allOf"]:
        kind = case["if"]["properties"]["kind"]["const"]
        options = _resolved(case["then"]["properties"]["options"], definitions)
        parts.append(f"### `options` of `kind: {kind}`\n\n{_said(options)}")
        parts.append(_table(_rows(options, "options.", definitions)))
    parts.append("## Pipelines: `config/pipelines/NAME.yaml`\n")
    pipeline = definitions["PipelineSpec"]
    plain = {key: one for key, one in pipeline["properties"].items() if not _keys(one, definitions)}
    parts.append(_table(_rows({**pipeline, "properties": plain}, "", definitions)))
    for key, one in pipeline["properties"].items():
        if key not in plain:
            parts += _section(key, one, definitions)
    return "\n".join(parts)


def keys_without_meaning(schema: Node) -> list[str]:
    definitions = schema["$defs"]
    return [
        f"{name}.{key}"
        for name, one in definitions.items()
        for key, value in one.get("properties", {}).items()
        if not value.get("description")
    ]


def _section(key: str, one: Node, definitions: Node) -> Iterator[str]:
    spec = _resolved(one, definitions)
    yield f"### `{key}`\n\n{one['description']}.\n"
    yield _table(_rows(spec, f"{key}.", definitions))
    for name, value in spec["properties"].items():
        for case in _cases(value, definitions):
            encode = case["properties"]["encode"]["const"]
            yield f"#### `{key}.{name}.NAME` with `encode: {encode}`\n"
            yield _table(_rows(case, f"{key}.{name}.NAME.", definitions))


def _rows(spec: Node, prefix: str, definitions: Node, own: Node | None = None) -> Iterator[str]:
    """A row for each key. `own`: defaults where this mapping lies, instead of its class's."""
    for key, declared in spec["properties"].items():
        one = declared if own is None or key not in own else {**declared, "default": own[key]}
        default = _default(key, one, spec, definitions)
        meaning = one["description"].replace("|", "\\|")
        name = prefix + key
        yield f"| `{name}` | {_type(one, definitions)} | {default} | {meaning} |"
        inner = _keys(one, definitions)
        if inner is not None and key != "options":
            yield from _rows(inner, f"{name}.", definitions, one.get("default"))
        items = one.get("additionalProperties")
        named = _keys(items, definitions) if isinstance(items, dict) else None
        if named is not None:
            yield from _rows(named, f"{name}.NAME.", definitions)


def _table(rows: Iterator[str]) -> str:
    return COLUMNS + "\n".join(rows) + "\n"


def _resolved(one: Node, definitions: Node) -> Node:
    reference = one.get("$ref")
    found: Node = one if reference is None else definitions[reference.rpartition("/")[2]]
    return found


def _keys(one: Node, definitions: Node) -> Node | None:
    found = _resolved(one, definitions)
    return found if "properties" in found else None


def _cases(one: Node, definitions: Node) -> list[Node]:
    items = one.get("additionalProperties")
    cases = items.get("oneOf", []) if isinstance(items, dict) else []
    return [_resolved(case, definitions) for case in cases]


def _said(spec: Node) -> str:
    return " ".join(str(spec["description"]).split()) + "\n"


def _default(key: str, one: Node, spec: Node, definitions: Node) -> str:
    if key in spec.get("required", []):
        return "**required**"
    if _keys(one, definitions) is not None:
        return ""
    value = one.get("default")
    return "" if value in (None, "", [], {}) else f"`{json.dumps(value).strip(chr(34))}`"


def _type(one: Node, definitions: Node) -> str:
    found = _resolved(one, definitions)
    if "anyOf" in found:
        return _or(_type(each, definitions) for each in found["anyOf"] if each != NULL)
    if "const" in found or "enum" in found:
        return _or(f"`{value}`" for value in found.get("enum", [found.get("const")]))
    if found["type"] == "array":
        return f"list of {_type(found['items'], definitions)}"
    return _plain_type(found)


def _or(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _plain_type(one: Node) -> str:
    if one.get("pattern") == DURATION:
        return "duration"
    if one.get("format") == "date-time":
        return "instant"
    return TYPES[one["type"]] + _bounds(one)


def _bounds(one: Node) -> str:
    low, high = one.get("minimum"), one.get("maximum")
    above, below = one.get("exclusiveMinimum"), one.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    words = [
        f"at least {low:,}" if low is not None else "",
        f"above {above:,}" if above is not None else "",
        f"at most {high:,}" if high is not None else "",
        f"below {below:,}" if below is not None else "",
    ]
    return "".join(f", {word}" for word in words if word)


_HEAD = """\
# What is lost or repeated when something goes wrong

Generated from the tests by `make pages`; [guarantees.md](guarantees.md) explains it. *Red* means
that the run fails with an error that says why. *Nothing* is what the model loses or repeats; some
of it is read again.

| what happens | what it costs | test |
|---|---|---|
"""


def cases_page(tests: Path) -> str:
    """The page; each case is a `pytest.mark.guarantee(what happens, what it costs)`."""
    rows = [
        f"| {case} | {cost} | `tests/{file.relative_to(tests)}::{name}` |\n"
        for file in sorted(tests.rglob("*.py"))
        for case, cost, name in _guarantees(ast.parse(file.read_text()))
    ]
    return _HEAD + "".join(rows)


def _guarantees(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.guarantee":
                    case, cost = (str(ast.literal_eval(each)) for each in mark.args)
                    yield case, cost, node.name


_ROOT = Path(__file__).resolve().parents[1]
_DOCS = _ROOT / "docs"
# Last of all: some of the scripts have the names of packages.
sys.path.append(str(_ROOT / "benchmarks"))


def pages() -> dict[Path, str]:
    """The text of each page, by its file."""
    from learning_page import MEASURED, page_text, with_block

    learning = _DOCS / "learning.md"
    return {
        learning: with_block(learning, MEASURED, page_text(measured_regimes())),
        _DOCS / "reference.md": reference_page(json_schema(installed_kinds())),
        _DOCS / "cli.md": manual_page(),
        _DOCS / "internals" / "cases.md": cases_page(Path(__file__).parent),
    }


def main() -> None:
    """Write them."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
