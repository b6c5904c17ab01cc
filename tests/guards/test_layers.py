"""Who may import whom: the contracts hold, and they are complete."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.budgets import module_name, source_files

CONFIG = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS: list[dict[str, Any]] = CONFIG["contracts"]
FILES_MAX = 12
INITS = [path for path in source_files() if path.name == "__init__.py"]
ROOMS = [path.parent for path in INITS if path.parent.name not in {"forebay", "examples"}]
# The second half of what a room says: what lies outside it.
LIMIT = re.compile(r"\b(may not|nothing (in here )?may|knows? (no|nothing))\b", re.IGNORECASE)
# And in which process it runs.
PROCESS = re.compile(
    r"process|trainer|supervisor|data (driver|executor)|command line|keeper|Airflow|stage|every"
)
KINDS = sorted(path.parent.name for path in Path("datatasks/sources").glob("*/kind.py"))
# Packages that only a few files may import: what the command line starts must stay light.
GUARDED = {
    *("airflow", "tensorflow", "kafka", "pyiceberg"),
    *("pandas", "matplotlib", "jinja2", "scipy", "boto3"),
}


def test_the_contracts_hold() -> None:
    result = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in result.stdout


def test_the_four_processes_stand_in_one_row() -> None:
    layers = layers_of("forebay.executors")
    processes = ("supervisor", "driver", "data_executor", "trainer")
    assert " | ".join(processes) in layers["layers"]
    apart, _planes = (each for each in CONTRACTS if each["type"] == "independence")
    assert apart["modules"] == [f"forebay.executors.{name}" for name in processes]
    assert "ignore_imports" not in apart
    # Features, queue and metrics know nothing of models.
    rows = layers_of("forebay.mixture")["layers"]
    assert rows.index("features | queue | metrics") > rows.index("models")


def test_source_kinds_know_nothing_of_each_other() -> None:
    """All in one row, above what they share; a new kind has to be put there."""
    layers = layers_of("forebay.datatasks.sources")
    *_, kinds, formats, common = layers["layers"]
    assert kinds.split(" | ") == KINDS
    assert (formats, common) == ("formats", "common")
    iceberg = "forebay.datatasks.sources.iceberg.* -> forebay.datatasks.sources.parquet."
    assert all(line.startswith(iceberg) for line in layers["ignore_imports"])


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_a_room_is_small_and_says_what_it_is_for(room: Path) -> None:
    assert len(list(room.glob("*.py"))) <= FILES_MAX
    says = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    says = " ".join(says.split())
    assert LIMIT.search(says), f"{room}/__init__.py says what it may not know"
    assert PROCESS.search(says), f"{room}/__init__.py says in which process it runs"


@pytest.mark.parametrize("room", [*ROOMS, Path("forebay"), Path("examples")], ids=str)
def test_a_room_with_rooms_in_it_has_layers(room: Path) -> None:
    """All of them: a new room without a place in a contract fails."""
    if not any(each.parent.parent == room for each in INITS):
        return
    layers = layers_of(module_name(room / "__init__.py").removesuffix(".__init__"))
    assert layers["exhaustive"]
    if room != Path("datatasks/sources"):
        assert "ignore_imports" not in layers


def layers_of(container: str) -> dict[str, Any]:
    (found,) = (
        contract
        for contract in CONTRACTS
        if contract["type"] == "layers" and contract["containers"] == [container]
    )
    return found


def test_heavy_packages_have_their_contracts() -> None:
    assert CONFIG["include_external_packages"]
    assert CONFIG["unmatched_ignore_imports_alerting"] == "error"
    forbidden = [contract for contract in CONTRACTS if contract["type"] == "forbidden"]
    both = ["forebay", "examples"]
    everywhere = [each for each in forbidden if each["source_modules"] == both]
    assert {name for each in everywhere for name in each["forbidden_modules"]} >= GUARDED
    nobodys, light, _planes = [each for each in forbidden if each not in everywhere]
    assert (nobodys["source_modules"], nobodys["forbidden_modules"]) == (both[:1], both[1:])
    assert light["source_modules"] == ["forebay.operators", "forebay.dags"]
    assert not light.get("allow_indirect_imports")


def test_exceptions_name_their_package() -> None:
    """An exception lets one file, or a folder that is there for it, import one package."""
    allowed = [line for contract in CONTRACTS for line in contract.get("ignore_imports", [])]
    folders = {line.split(" -> ")[0] for line in allowed if "*" in line}
    assert folders <= {
        "forebay.datatasks.sources.iceberg.*",  # its data files are Parquet files
        "forebay.datatasks.sources.iceberg.**",
        "forebay.datatasks.sources.kafka.**",
        "forebay.mixture.kernels.*",
        "forebay.mixture.models.**",
        "forebay.operators.**",
    }
    assert all("*" not in line.split(" -> ")[1] for line in allowed)
