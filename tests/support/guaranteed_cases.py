"""The page of what is lost or repeated when something goes wrong: from the marks of the tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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
        for case, cost, name in _cases(ast.parse(file.read_text()))
    ]
    return _HEAD + "".join(rows)


def _cases(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.guarantee":
                    case, cost = (str(ast.literal_eval(each)) for each in mark.args)
                    yield case, cost, node.name
