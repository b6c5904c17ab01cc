"""Writes the pages of docs/, and tables of one, that are made from the code: `make pages`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from support.manual import manual_page
from support.reference import reference_page

from forebay.config.schema import json_schema
from forebay.config.specs.registry import installed_kinds
from forebay.mixture.advice.regimes import measured_regimes

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
