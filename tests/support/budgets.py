"""How much there is to read: what `make counts` prints and tests/guards/test_budgets.py bounds."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOMS = ("config", "dags", "datatasks", "executors", "mixture", "operators")
FOLDERS = (*ROOMS, "forebay", "examples")
GENERATED = {Path("docs/reference.md"), Path("docs/cli.md"), Path("docs/internals/cases.md")}
# Written by benchmarks and by `make captures`.
BY_PROGRAMS = re.compile(
    r"<!-- (\w+): begin -->.*?<!-- \1: end -->|<!-- captured: \w+ -->\n```.*?```", re.DOTALL
)
FRAGMENT_LINES = 60


@cache
def counts() -> dict[str, int]:
    sources = source_files()
    tests = list(Path("tests").rglob("*.py"))
    folders = Counter(file.parent for file in sources)
    pages = {*Path().glob("*.md"), *Path("docs").rglob("*.md")} - GENERATED
    return {
        "lines of source": sum(map(lines, sources)),
        "files of source": len(sources),
        "folders of more than 12 files": sum(count > 12 for count in folders.values()),
        "fragments": len(fragments(sources)),
        "lines of tests": sum(map(lines, tests)),
        "lines of tests/support": sum(lines(f) for f in tests if f.parts[1] == "support"),
        "words that people write": sum(map(words, pages)),
    }


def source_files(*more: str) -> list[Path]:
    """Each once: the six links below forebay/ are not followed. more: further folders."""
    return [
        file
        for folder in (*FOLDERS, *more)
        for file in sorted(Path(folder).rglob("*.py"))
        if not file.is_relative_to("forebay") or file.resolve() == file.absolute()
    ]


def lines(file: Path) -> int:
    return len(file.read_text().splitlines())


def fragments(sources: list[Path]) -> list[Path]:
    """Modules of few lines whose one reader is a module of the same folder."""
    readers: dict[str, set[Path]] = {}
    for file in sources:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
                for name in names:
                    readers.setdefault(name, set()).add(file)
    found = []
    for file in sources:
        read_by = readers.get(module_name(file), set())
        small = lines(file) <= FRAGMENT_LINES and file.name not in {"__init__.py", "__main__.py"}
        if small and [each.parent for each in read_by] == [file.parent]:
            found.append(file)
    return found


def module_name(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts if parts[0] in {"forebay", "examples"} else ("forebay", *parts))


def words(page: Path) -> int:
    return len(BY_PROGRAMS.sub("", page.read_text()).split())


def imported_modules(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found
