"""What no linter looks for: sizes, things put off, machine paths, swallowed errors, kind names."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.budgets import source_files

TEXTS = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "pyproject.toml",
    "requirements.lock",
    ".ci/run",
)
LINES_MEDIAN = 150
LINES_MAX = 500
FUNCTION_LINES_MAX = 70
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.}/~-])/(?:home|root|work|Users|mnt)/\w")
SOURCES = source_files("benchmarks")
TREES = {file: ast.parse(file.read_text(), str(file)) for file in SOURCES}


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Nodes of these kinds in the whole product, each with its place."""
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                yield f"{file}:{getattr(node, 'lineno', 0)}", node


def test_files_are_small() -> None:
    lines = {file: len(file.read_text().splitlines()) for file in SOURCES}
    assert len(lines) > 100  # or nothing was looked at
    assert statistics.median(lines.values()) < LINES_MEDIAN
    assert {file: count for file, count in lines.items() if count > LINES_MAX} == {}


def test_functions_are_short() -> None:
    long = [
        (place, node.name)
        for place, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


def test_every_module_says_what_it_is() -> None:
    assert [str(file) for file, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_every_public_method_is_described_where_it_is_first_defined() -> None:
    """An override needs no words of its own."""
    classes = {node.name: node for _, node in nodes(ast.ClassDef) if isinstance(node, ast.ClassDef)}

    def above(node: ast.ClassDef) -> Iterator[ast.ClassDef]:
        for base in node.bases:
            inner = base.value if isinstance(base, ast.Subscript) else base
            found = classes.get(ast.unparse(inner).rpartition(".")[2])
            if found is not None and found is not node:
                yield from (found, *above(found))

    def methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
        return {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}

    silent = [
        f"{place}: {node.name}.{name}"
        for place, node in nodes(ast.ClassDef)
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and not place.startswith(("forebay/testing/", "benchmarks/"))
        for name, method in methods(node).items()
        if not (name.startswith("_") or ast.get_docstring(method))
        and not any(name in methods(each) for each in above(node))
    ]
    assert silent == []


def test_no_exception_is_swallowed() -> None:
    """A handler does something; suppress() names the one error that is fine."""
    empty = [
        place
        for place, node in nodes(ast.ExceptHandler)
        if isinstance(node, ast.ExceptHandler) and all(map(does_nothing, node.body))
    ]
    broad = [
        place
        for place, node in nodes(ast.Call)
        if re.fullmatch(r"(contextlib\.)?suppress\(.*\b(Base)?Exception\b.*\)", ast.unparse(node))
    ]
    assert empty + broad == []


def does_nothing(statement: ast.stmt) -> bool:
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, ast.Pass)


def test_no_code_asks_for_a_source_kind_by_name() -> None:
    """A kind of somebody else's must be as good as ours. The demo chooses its own stream."""
    kinds = {entry.name for entry in importlib.metadata.entry_points(group="forebay.sources")}
    assert {"parquet", "kafka"} <= kinds
    asked = [
        f"{place}: {ast.unparse(node)}"
        for place, node in nodes(ast.Compare, ast.MatchValue)
        if not place.startswith("examples/demo/")
        and any(isinstance(n, ast.Constant) and n.value in kinds for n in ast.walk(node))
    ]
    assert asked == []


@pytest.mark.parametrize("pattern", [LATER, MACHINE_PATH], ids=["put off", "machine path"])
def test_nothing_is_put_off_and_no_machine_is_named(pattern: re.Pattern[str]) -> None:
    yaml = [file for kind in ("sources", "pipelines") for file in Path("config", kind).iterdir()]
    files = [*SOURCES, *Path("docs").rglob("*.md"), *yaml, *map(Path, TEXTS)]
    if pattern is LATER:
        files += Path("tests").rglob("*.py")
    found = [
        f"{file}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []
