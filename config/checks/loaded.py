"""One YAML file of a project, read: its document, its model and its problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from forebay.config.specs.base import Spec
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.registry import SourceKind, kind_named, kind_names
from forebay.config.specs.sources import SourceSpec
from forebay.config.yaml.environment import fill_in, hide_written, names_of
from forebay.config.yaml.files import read_text
from forebay.config.yaml.keys import check_keys
from forebay.config.yaml.positions import Document, read_document
from forebay.config.yaml.problems import Problem
from forebay.config.yaml.spelling import nearest
from forebay.config.yaml.validation import validate
from forebay.errors import ForebayError
from forebay.system.names import NAME_RULE, is_name

AnySpec = TypeVar("AnySpec", SourceSpec, PipelineSpec)


@dataclass
class Loaded(Generic[AnySpec]):
    """A file as far as it could be read. `spec` is None if it has a structural problem.

    repaired: what the file says with each unknown key spelled as suggested; None if something else
    is wrong. It serves only to find further problems, never to run.
    kind, options: set for a source whose kind is installed and whose options are valid.
    variables: names of the environment variables that it refers to. automatic: whether
    `train.compare` was `auto`.
    """

    name: str
    document: Document
    spec: AnySpec | None = None
    repaired: AnySpec | None = None
    problems: list[Problem] = field(default_factory=list)
    kind: type[SourceKind] | None = None
    options: Spec | None = None
    variables: frozenset[str] = frozenset()
    automatic: bool = False

    @property
    def file(self) -> str:
        """The path as shown to users."""
        return self.document.file


def load_source(path: Path, environ: Mapping[str, str]) -> Loaded[SourceSpec]:
    loaded: Loaded[SourceSpec] = _read(path, SourceSpec, environ)
    value = loaded.document.value
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        _read_options(loaded, value)
    return _validated(loaded, SourceSpec)


def load_pipeline(path: Path, environ: Mapping[str, str]) -> Loaded[PipelineSpec]:
    return _validated(_read(path, PipelineSpec, environ), PipelineSpec)


def _read(path: Path, model: type[AnySpec], environ: Mapping[str, str]) -> Loaded[AnySpec]:
    loaded: Loaded[AnySpec] = Loaded(path.stem, Document(str(path)))
    if not is_name(path.stem):
        message = f"the file name gives the name {path.stem!r}, but {NAME_RULE}: rename the file"
        loaded.problems.append(Problem(str(path), 1, 1, "name", message))
    text, unreadable = read_text(path)
    if unreadable:
        loaded.problems += unreadable
        return loaded
    document, problems = read_document(text, str(path))
    loaded.problems += problems
    if document is not None:
        loaded.document = document
        hide_written(document.value, model.model_fields)
        loaded.problems += check_keys(document, model)
        loaded.variables = names_of(document.value)
        loaded.problems += fill_in(document, environ)
    return loaded


def _read_options(loaded: Loaded[SourceSpec], value: dict[str, Any]) -> None:
    document, name = loaded.document, value["kind"]
    if name not in kind_names():
        message = f"kind: unknown kind {name!r}. Installed kinds: {', '.join(kind_names())}"
        hint = nearest(name, kind_names())
        loaded.problems.append(document.problem(("kind",), "unknown-kind", message, hint))
        return
    options = value.get("options", {})
    try:
        loaded.kind = kind_named(name)
        if not isinstance(options, dict):
            return
        if "options" in value:
            loaded.problems += check_keys(document, loaded.kind.Options, ("options",))
        loaded.options, problems = validate(loaded.kind.Options, options, document, ("options",))
    except ForebayError as error:
        problems = [document.problem(("kind",), "broken-kind", str(error))]
    except Exception as error:  # noqa: BLE001 - a kind is anybody's code, and other files are not
        message = (
            f"kind {name!r} cannot check its options: {type(error).__name__}: {error}; this is a "
            "bug in the package that provides the kind"
        )
        problems = [document.problem(("options",), "broken-kind", message)]
    _add(loaded, problems)


def _validated(loaded: Loaded[AnySpec], model: type[AnySpec]) -> Loaded[AnySpec]:
    value = loaded.document.value
    if isinstance(value, dict):
        spec, problems = validate(model, {**value, "name": loaded.name}, loaded.document)
        _add(loaded, problems)
        loaded.spec = None if loaded.problems else spec
        misspelled = all(each.code == "unknown-key" and each.hint for each in loaded.problems)
        loaded.repaired = spec if misspelled else None
    return loaded


def _add(loaded: Loaded[AnySpec], problems: list[Problem]) -> None:
    """Add problems, except about a value that already has one: the first says what to change."""
    known = {_place(problem) for problem in loaded.problems}
    loaded.problems += [
        problem
        for problem in problems
        if problem.code == "missing-key" or _place(problem) not in known
    ]


def _place(problem: Problem) -> tuple[str, int, int]:
    return problem.file, problem.line, problem.column
