"""Whether windows are over and slices end is asked of one clock, which tests set."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def looks_at_the_host_s(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in {"now", "utcnow", "today"}
            and isinstance(node.value, ast.Name)
            and node.value.id in {"datetime", "date"}
        ):
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_planning_asks_the_clock_alone() -> None:
    folders = [ROOT / "datatasks", ROOT / "executors" / "driver"]
    files = [each for folder in folders for each in sorted(folder.rglob("*.py"))]
    assert len(files) > 50
    assert [place for each in files for place in looks_at_the_host_s(each)] == []
