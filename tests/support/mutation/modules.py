"""Which modules hold pure rules, and which tests reach a module by imports."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

FOLDERS = ("config", "datatasks", "executors", "mixture", "operators")
# What talks to a process, a network or a graph runtime is no pure rule.
_GLUE = (
    "airflow.listeners",
    "airflow.plugins_manager",
    "airflow.sdk.execution_time",
    "airflow.triggers",
    "forebay.datatasks.sources.kafka.client",
    "forebay.executors.role",
    "forebay.executors.wire.rpc",
    "grpc",
    "kafka",
    "pyarrow.flight",
    "pyiceberg",
    "signal",
    "socket",
    "subprocess",
    "tensorflow",
)
_KINDS = ("unit", "property", "contract")
# A broker, or the training of whole towers: too slow for one changed line.
_SLOW = ("contract/test_kafka", "unit/mixture/models/test_towers")
# Tests that reach a module over more imports than this are about something else.
_FAR = 3


@dataclass(frozen=True)
class Tree:
    root: Path

    def rule_modules(self) -> list[Path]:
        """Modules of pure rules, relative to the root: neither glue nor beside it on top of it."""
        every = [
            path
            for folder in FOLDERS
            for path in sorted((self.root / folder).rglob("*.py"))
            if path.name not in {"__init__.py", "__main__.py"}
        ]
        glue = {
            name: path for path in every if (name := self._name(path)) in _GLUE or _is_glue(path)
        }
        return [
            path
            for path in every
            if path not in glue.values()
            and not any(
                glue[name].parent == path.parent for name in _imports_of(path) if name in glue
            )
        ]

    def tests_of(self, module: Path) -> list[list[str]]:
        """Test files that reach a module, in groups: those most likely to notice come first."""
        distances = self._distances(self._name(module))
        groups: dict[int, list[str]] = defaultdict(list)
        for test, direct in self._tests.items():
            near = min((distances[used] for used in direct if used in distances), default=_FAR + 1)
            group = min(1 + near, self._nearness(test, module))
            if group <= _FAR:
                groups[group].append(test)
        return [sorted(groups[group], key=self._cost) for group in sorted(groups)]

    def _cost(self, test: str) -> tuple[int, int]:
        """Unit tests before property tests before contracts, short files before long ones."""
        return _KINDS.index(test.split("/")[1]), (self.root / test).stat().st_size

    def _nearness(self, test: str, module: Path) -> int:
        """0 for a test named after the module, 1 for others in the folder that mirrors its room."""
        path, room = Path(test), module.relative_to(self.root).parent
        if path.parent == Path("tests/unit") / room:
            return 0 if module.stem in path.stem else 1
        of_room = not test.startswith("tests/unit") and room.name in path.stem
        return 2 if of_room else _FAR + 1

    def _distances(self, name: str) -> dict[str, int]:
        found = {name: 0}
        edge = [name]
        while edge:
            edge = [user for used in edge for user in self._users[used] if user not in found]
            found.update(dict.fromkeys(edge, max(found.values()) + 1))
        return found

    @cached_property
    def _users(self) -> dict[str, set[str]]:
        users: dict[str, set[str]] = defaultdict(set)
        for folder in FOLDERS:
            for path in (self.root / folder).rglob("*.py"):
                for used in _imports_of(path):
                    users[used].add(self._name(path))
        entries = tomllib.loads((self.root / "pyproject.toml").read_text())["project"]
        for named in entries.get("entry-points", {}).get("forebay.sources", {}).values():
            users[named.partition(":")[0]].add("forebay.config.specs.registry")
        return users

    @cached_property
    def _tests(self) -> dict[str, set[str]]:
        found = {}
        for kind in _KINDS:
            for path in sorted((self.root / "tests" / kind).rglob("test_*.py")):
                test = path.relative_to(self.root).as_posix()
                if not any(slow in test for slow in _SLOW):
                    found[test] = self._with_helpers(path) | self._named_in(path)
        return found

    def _named_in(self, test: Path) -> set[str]:
        """Modules of the room that a test mirrors, if its name has theirs."""
        room = self.root / Path(*test.relative_to(self.root).parts[2:-1])
        return {self._name(path) for path in room.glob("*.py") if path.stem in test.stem}

    def _with_helpers(self, path: Path) -> set[str]:
        names, edge = set[str](), [path]
        seen = {path}
        while edge:
            for name in _imports_of(edge.pop()):
                helper = (self.root / "tests" / Path(*name.split("."))).with_suffix(".py")
                if name.startswith("support.") and helper.exists() and helper not in seen:
                    seen.add(helper)
                    edge.append(helper)
                names.add(name)
        return names

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(["forebay", *parts]).removesuffix(".__init__")


@cache
def _imports_of(path: Path) -> frozenset[str]:
    """Every module that a file may import when it runs, those inside functions too."""
    return frozenset(_imported(ast.parse(path.read_bytes()).body))


def _is_glue(path: Path) -> bool:
    imports = _imports_of(path)
    return any(f"{name}.".startswith(f"{glue}.") for name in imports for glue in _GLUE) or (
        "threading" in imports and "threading.Thread(" in path.read_text()
    )


def _imported(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Constant) and _is_class_name(node.value):
                yield str(node.value).partition(":")[0]


def _is_class_name(value: object) -> bool:
    """Whether a constant is a class that is imported by its name: `forebay.module:Class`."""
    return isinstance(value, str) and value.startswith("forebay.") and " " not in value
