"""The checks are strict: few warnings ignored and each with a reason, no module left out."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

from support.budgets import imported_modules, source_files

TEXT = Path("pyproject.toml").read_text()
TOOLS = tomllib.loads(TEXT)["tool"]
IGNORES_MAX = 15


def test_warnings_are_errors_with_few_exceptions_each_for_a_reason() -> None:
    first, *ignored = TOOLS["pytest"]["ini_options"]["filterwarnings"]
    assert first == "error"
    assert len(ignored) <= IGNORES_MAX
    for line in ignored:
        action, message, category, module = line.split(":", 3)
        assert action == "ignore", line
        assert len(message) > 10, line
        assert category not in {"", "Warning", "Exception"}, line
        assert re.match(r"\(?[a-z]\w+", module), line
    block = TEXT[TEXT.index("filterwarnings = [") :]
    lines = block[: block.index("\n]")].splitlines()[2:]
    without = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if "ignore" in line[:12] and not before.strip().startswith("# ")
    ]
    assert without == []


def test_no_test_ignores_warnings_by_itself() -> None:
    words = re.compile("simple" + "filter|filter" + r"warnings\(|PYTHON" + "WARNINGS")
    found = [str(f) for f in Path("tests").rglob("*.py") if words.search(f.read_text())]
    assert found == []


def test_mypy_sees_every_module() -> None:
    mypy = TOOLS["mypy"]
    assert (mypy["strict"], mypy["packages"]) == (True, ["forebay", "examples"])
    assert {"exclude", "follow_imports", "ignore_errors", "files"}.isdisjoint(mypy)
    (override,) = mypy["overrides"]
    assert set(override) == {"module", "ignore_missing_imports"}


def test_packages_without_types_ship_none_and_are_imported() -> None:
    (override,) = TOOLS["mypy"]["overrides"]
    names = {module.removesuffix(".*") for module in override["module"]}
    typed = {name for name in names if ships_types(name)}
    assert typed == set()
    assert names <= {name for file in source_files() for name in imported_modules(file)}


def ships_types(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    assert spec is not None, name
    folders = [Path(folder) for folder in spec.submodule_search_locations or []]
    return any((folder / "py.typed").exists() for folder in folders)


def test_ruff_leaves_no_file_out() -> None:
    """The namespace's links are named since their files are checked under their real names."""
    ruff = TOOLS["ruff"]
    links = {str(path) for path in Path("forebay").iterdir() if path.is_symlink()}
    assert set(ruff["exclude"]) | {"forebay/dags", "forebay/operators"} >= links
    assert set(ruff["exclude"]) - {".venv", "benchmarks/examples"} <= {
        f"forebay/{name}"
        for name in ("config", "dags", "datatasks", "executors", "mixture", "operators")
    }
    assert ruff["extend-exclude"] == [".build"]
