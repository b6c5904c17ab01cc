"""`forebay dags sync`: one stub for each pipeline of a config folder. Knows nothing of Airflow."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from forebay.config.load import Project, load_project
from forebay.config.specs.jobs import CONTINUOUS
from forebay.config.yaml.files import SUFFIXES, read_bytes
from forebay.config.yaml.positions import Document
from forebay.errors import ConfigError
from forebay.system.files.durable import make_folder, write_atomically

_IMPORT = "from forebay.dags.factory import pipeline"
# Both arguments are Python literals as `repr` writes them: quotes of either kind.
_LITERAL = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_STUB = re.compile(
    rf"{re.escape(_IMPORT)}\n"
    rf"dag = pipeline\((?P<name>{_LITERAL}), config=(?P<config>{_LITERAL})\)"
    r"  # airflow, (?P<digest>[0-9a-f]{12})\n?"
)


class Stub(NamedTuple):
    """One stub. digest: of the YAML files that the pipeline depends on."""

    name: str
    config: Path
    digest: str

    @property
    def file_name(self) -> str:
        return f"{self.name}.py"

    @property
    def text(self) -> str:
        """The file's content.

        A change of the YAML changes it, so that Airflow parses it again. Airflow ignores files
        that do not contain the words `dag` and `airflow`.
        """
        call = f"pipeline({_literal(self.name)}, config={_literal(str(self.config))})"
        return f"{_IMPORT}\ndag = {call}  # airflow, {self.digest}\n"


def read_stub(path: Path) -> Stub | None:
    """The stub in a file; None if the file is not a stub."""
    try:
        found = _STUB.fullmatch(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return None
    if found is None:
        return None
    name, config = ast.literal_eval(found["name"]), ast.literal_eval(found["config"])
    return Stub(name, Path(config), found["digest"])


def _literal(text: str) -> str:
    """A literal in double quotes where that needs no escapes, as a formatter would write it."""
    # A file name may not be valid text, but the stub must be.
    shown = repr(text) if text.isprintable() else ascii(text)
    plain = shown[1:-1] == text and '"' not in text
    return f'"{text}"' if plain else shown


_DIGEST_LENGTH = 12


class SyncReport(NamedTuple):
    """Names of pipelines whose stubs were written, removed, or already up to date."""

    written: list[str]
    removed: list[str]
    kept: list[str]


def sync(config_dir: Path, dags_dir: Path) -> SyncReport:
    """Make the stubs of a config folder match its pipelines, including those with broken YAML.

    Stubs of other config folders, and files that are not stubs, are left alone.

    Raises:
        ConfigError: when the config folder does not exist, or when a file that is not ours, or a
            pipeline of another config folder, already has the name. Then nothing is changed.
    """
    config_dir = config_dir.absolute()
    if not config_dir.is_dir():
        raise ConfigError(
            f"{config_dir}: no such folder: give the one with sources/ and pipelines/ as --config"
        )
    wanted = {stub.file_name: stub for stub in _stubs(config_dir)}
    there = _there(dags_dir)
    _refuse_taken(wanted, there, dags_dir)
    make_folder(dags_dir)
    report = SyncReport([], [], [])
    for file_name, stub in sorted(wanted.items()):
        if there.get(file_name) == stub:
            report.kept.append(stub.name)
        else:
            write_atomically(dags_dir / file_name, stub.text)
            report.written.append(stub.name)
    for file_name, found in sorted(there.items()):
        if found is not None and found.config == config_dir and file_name not in wanted:
            (dags_dir / file_name).unlink(missing_ok=True)
            report.removed.append(found.name)
    return report


def followed(config_dir: Path) -> dict[str, str]:
    """Pipelines whose windows are trained while they go on, each with a digest of its YAML files.

    Those with broken YAML are left out.
    """
    project = load_project(config_dir)
    continuous = {
        name for name, each in project.pipelines.items() if each.job.process == CONTINUOUS
    }
    return {stub.name: stub.digest for stub in _stubs_of(project) if stub.name in continuous}


def _stubs(config_dir: Path) -> Iterator[Stub]:
    yield from _stubs_of(load_project(config_dir))


def _stubs_of(project: Project) -> Iterator[Stub]:
    for name, loaded in project.pipeline_files.items():
        files = [Path(loaded.file), *_source_files(project, loaded.document)]
        yield Stub(name, project.config_dir, _digest(files))


def _source_files(project: Project, pipeline: Document) -> list[Path]:
    """Files of the sources that a pipeline names; of all sources if it is too broken to tell."""
    try:
        streams: Mapping[str, Any] = pipeline.value["dataset"]["streams"]
        names = {str(source) for stream in streams.values() for source in stream["sources"]}
    except (TypeError, KeyError, AttributeError):
        names = set(project.source_files)
    folder = project.config_dir / "sources"
    found = (folder / f"{name}{suffix}" for name in sorted(names) for suffix in SUFFIXES)
    return [path for path in found if path.is_file()]


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        try:
            content = read_bytes(path)
        except OSError as error:  # why it cannot be read: then only its own stub is affected
            content = (error.strerror or str(error)).encode()
        digest.update(os.fsencode(path.name) + f"\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _there(dags_dir: Path) -> dict[str, Stub | None]:
    """Python files of the folder by name, with the stub that each contains."""
    if not dags_dir.is_dir():
        return {}
    return {path.name: read_stub(path) for path in dags_dir.glob("*.py") if path.is_file()}


def _refuse_taken(
    wanted: Mapping[str, Stub], there: Mapping[str, Stub | None], dags_dir: Path
) -> None:
    for file_name, stub in wanted.items():
        if file_name not in there:
            continue
        found = there[file_name]
        if found is None:
            raise ConfigError(
                f"{dags_dir / file_name} is not one of Forebay's stubs, but pipeline {stub.name!r} "
                f"of {stub.config} needs that name: rename one of the two"
            )
        if found.config != stub.config and _declares(found.config, stub.name):
            raise ConfigError(
                f"pipeline {stub.name!r} is declared in both {found.config} and {stub.config}, but "
                "two DAGs cannot have the same name: rename one of the two"
            )


def _declares(config_dir: Path, pipeline: str) -> bool:
    folder = config_dir / "pipelines"
    return any((folder / f"{pipeline}{suffix}").is_file() for suffix in SUFFIXES)
