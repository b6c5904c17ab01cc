"""What no linter looks for: sizes, things put off, machine paths, swallowed errors, kind names."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from support.budgets import module_name, source_files

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


@cache
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text(), str(file)) for file in SOURCES}


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Nodes of these kinds in the whole product, each with its place."""
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                yield f"{file}:{getattr(node, 'lineno', 0)}", node


def test_files_and_functions_are_small_and_modules_say_what_they_are() -> None:
    lines = {file: len(file.read_text().splitlines()) for file in SOURCES}
    assert len(lines) > 100  # or nothing was looked at
    assert statistics.median(lines.values()) < LINES_MEDIAN
    assert {file: count for file, count in lines.items() if count > LINES_MAX} == {}
    long = [
        (place, node.name)
        for place, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []
    assert [str(file) for file, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_what_the_documents_import_is_described_where_it_is_first_defined() -> None:
    """Elsewhere a docstring says what the signature cannot, or is not there."""
    pages = "".join(page.read_text() for page in Path().glob("docs/**/*.md"))
    shown = set(re.findall(r"from forebay\.([\w.]+) import", pages))
    assert len(shown) > 8  # or nothing was looked at
    silent = [
        f"{file}: {name}"
        for file, tree in trees().items()
        if module_name(file).removeprefix("forebay.") in shown and "testing" not in file.parts
        for name in undescribed(tree)
    ]
    assert silent == []


def undescribed(tree: ast.Module) -> Iterator[str]:
    """Its public classes, functions and methods without a docstring; overrides need none."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield node.name
            if isinstance(node, ast.ClassDef) and not node.bases:
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
                        yield from () if ast.get_docstring(each) else (f"{node.name}.{each.name}",)


def test_no_exception_is_swallowed() -> None:
    """A handler does something; suppress() names the one error that is fine."""

    def does_nothing(statement: ast.stmt) -> bool:
        constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        return constant or isinstance(statement, ast.Pass)

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
