"""A project from its YAML: every file read, every problem of every file collected."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal, TypeVar

from forebay.config.checks.crosscheck import check_pipeline, check_source
from forebay.config.checks.loaded import Loaded, load_pipeline, load_source
from forebay.config.checks.parts import dataset_parts
from forebay.config.checks.pipeline_check import settle_paradigm
from forebay.config.checks.rivals import put_rivals, settle_rivals
from forebay.config.checks.serving_check import check_shared_paths
from forebay.config.declared import Declared
from forebay.config.specs.models import Variant
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.yaml.files import yaml_files
from forebay.config.yaml.positions import Document, KeyPath
from forebay.config.yaml.problems import Problem, errors, first_of_file
from forebay.config.yaml.spelling import nearest
from forebay.errors import ConfigError
from forebay.system.names import shown

__all__ = ["Project", "load_project"]

Folder = Literal["sources", "pipelines"]
DUPLICATE = "duplicate-name"
AnySpec = TypeVar("AnySpec", SourceSpec, PipelineSpec)


@dataclass(frozen=True)
class Project:
    """All declarations of one `config/` folder. Files without problems are usable despite bad ones.

    root: parent of the folder; relative paths in source options start there.
    sources, pipelines: what is usable, by name; a pipeline only if all its sources are.
    problems: everything wrong, in file order.
    """

    root: Path
    config_dir: Path
    sources: dict[str, SourceSpec]
    pipelines: dict[str, PipelineSpec]
    problems: list[Problem]
    source_files: dict[str, Loaded[SourceSpec]] = field(repr=False)
    pipeline_files: dict[str, Loaded[PipelineSpec]] = field(repr=False)

    def pipeline(self, name: str) -> PipelineSpec:
        """A pipeline that can run.

        Raises:
            ConfigError: naming every problem of its file and its sources' files.
        """
        loaded = self.pipeline_files.get(name)
        if loaded is None:
            raise ConfigError(_unknown("pipeline", name, self.pipeline_files, self.config_dir))
        files = [loaded.file]
        if loaded.spec is not None:
            named = (self.source_files.get(source) for source in loaded.spec.source_names)
            files += [source.file for source in named if source is not None]
        self._refuse(f"pipeline {name!r}", files)
        return self.pipelines[name]

    def source(self, name: str) -> SourceSpec:
        """A source that can be opened.

        Raises:
            ConfigError: naming every problem of its file.
        """
        loaded = self.source_files.get(name)
        if loaded is None:
            raise ConfigError(_unknown("source", name, self.source_files, self.config_dir))
        self._refuse(f"source {name!r}", [loaded.file])
        return self.sources[name]

    def declared(self, name: str) -> Declared | None:
        """A usable pipeline and its sources as written; None if it is not in a file or usable."""
        pipeline = self.pipeline_files.get(name)
        if pipeline is None or name not in self.pipelines:
            return None
        names = self.pipelines[name].source_names
        sources = {source: self.source_files[source].document for source in names}
        return Declared.of(pipeline.document, sources)

    def keep_rivals(self, name: str, begun_with: Sequence[Variant]) -> PipelineSpec:
        """A usable pipeline; where its rivals are `auto`, those that a line was begun with.

        Raises:
            ConfigError: naming what the declarations now lack for one of these.
        """
        loaded = self.pipeline_files[name]
        if loaded.automatic and loaded.spec is not None and begun_with:
            declared = loaded.spec.train.variants[0]
            put_rivals(loaded, [each for each in begun_with if each != declared])
            wrong = errors(check_pipeline(loaded, self.source_files))
            if wrong:
                lines = "\n  ".join(map(str, wrong))
                raise ConfigError(f"pipeline {name!r}, with its line's rivals (auto):\n  {lines}")
            self.pipelines[name] = loaded.spec
        return self.pipelines[name]

    def where(self, folder: Folder, name: str, path: KeyPath) -> tuple[str, int, int]:
        """File, line and column of a key; of its nearest parent if the key is not in the file."""
        files: Mapping[str, Loaded[SourceSpec] | Loaded[PipelineSpec]] = (
            self.source_files if folder == "sources" else self.pipeline_files
        )
        document = files[name].document
        return (document.file, *document.key_place(path))

    def variables(self, pipeline: str) -> frozenset[str]:
        """Names of the environment variables that a usable pipeline and its sources refer to."""
        sources = (self.source_files[name] for name in self.pipelines[pipeline].source_names)
        return self.pipeline_files[pipeline].variables.union(*(each.variables for each in sources))

    def _refuse(self, what: str, files: list[str]) -> None:
        # By name: of a .yaml and a .yml, the second one has the problem.
        names = {Path(file).with_suffix("") for file in files}
        concerned = [
            problem
            for problem in errors(self.problems)
            if Path(problem.file).with_suffix("") in names
        ]
        if concerned:
            lines = "\n  ".join(str(problem) for problem in concerned)
            raise ConfigError(f"{what} is not usable:\n  {lines}")


def load_project(config_dir: Path, environ: Mapping[str, str] | None = None) -> Project:
    """Read DIR/sources/*.yaml and DIR/pipelines/*.yaml. Never raises because of their content."""
    environ = os.environ if environ is None else environ
    if unusable := _folder_problems(config_dir):
        return _project(config_dir, {}, {}, unusable, [])
    sources, doubled = _load_all(config_dir / "sources", load_source, environ)
    pipelines, doubled_too = _load_all(config_dir / "pipelines", load_pipeline, environ)
    for source in sources.values():
        source.problems += check_source(source)
    for pipeline in pipelines.values():
        settle_paradigm(pipeline, sources)
        settle_rivals(pipeline, sources)
        pipeline.problems += check_pipeline(pipeline, sources)
    check_shared_paths(config_dir.absolute().parent, pipelines)
    # Files that nothing reads. They concern no pipeline, so `load_one` does not report them.
    paths, misplaced = yaml_files(config_dir)
    message = "files belong in sources/ or pipelines/ of this folder: move this one there"
    misplaced += [Problem(str(path), 1, 1, "misplaced-file", message) for path in paths]
    return _project(config_dir, sources, pipelines, misplaced, [*doubled, *doubled_too])


def _project(
    config_dir: Path,
    sources: dict[str, Loaded[SourceSpec]],
    pipelines: dict[str, Loaded[PipelineSpec]],
    folder: list[Problem],
    doubled: list[Problem],
) -> Project:
    problems = list(folder)
    files: chain[Loaded[SourceSpec] | Loaded[PipelineSpec]] = chain(
        sources.values(), pipelines.values()
    )
    for loaded in files:
        problems += first_of_file(loaded.problems)
    usable = _usable(sources)
    return Project(
        root=config_dir.absolute().parent,
        config_dir=config_dir,
        sources=usable,
        pipelines={
            name: spec
            for name, spec in _usable(pipelines).items()
            if usable.keys() >= set(spec.source_names)
        },
        problems=[*problems, *doubled],
        source_files=sources,
        pipeline_files=pipelines,
    )


def load_one(config_dir: Path, name: str, environ: Mapping[str, str] | None = None) -> Project:
    """Read one pipeline and the sources that it names; other files are not opened.

    Reports the same problems as `load_project`, but not paths shared with other pipelines, which
    are refused when they are written to. Never raises because of the files' content.
    """
    environ = os.environ if environ is None else environ
    if unusable := _folder_problems(config_dir):
        return _project(config_dir, {}, {}, unusable, [])
    pipelines, doubled = _load_all(config_dir / "pipelines", load_pipeline, environ, {name})
    wanted = {
        source for pipeline in pipelines.values() for source in dataset_parts(pipeline).source_names
    }
    sources, doubled_too = _load_all(config_dir / "sources", load_source, environ, wanted)
    used = {source: loaded for source, loaded in sources.items() if source in wanted}
    for loaded in used.values():
        loaded.problems += check_source(loaded)
    for pipeline in pipelines.values():
        settle_paradigm(pipeline, sources)
        settle_rivals(pipeline, sources)
        # All existing names, read or not: an unknown name may be a misspelling of any of them.
        pipeline.problems += check_pipeline(pipeline, sources)
    concerned = [
        problem
        for problems, names in ((doubled, {name}), (doubled_too, wanted))
        for problem in problems
        if problem.code != DUPLICATE or Path(problem.file).stem in names
    ]
    return _project(config_dir, used, pipelines, [], concerned)


def _usable(files: Mapping[str, Loaded[AnySpec]]) -> dict[str, AnySpec]:
    return {
        name: loaded.spec
        for name, loaded in files.items()
        if loaded.spec is not None and not errors(loaded.problems)
    }


def _load_all(
    folder: Path,
    load: Callable[[Path, Mapping[str, str]], Loaded[AnySpec]],
    environ: Mapping[str, str],
    names: Collection[str] | None = None,
) -> tuple[dict[str, Loaded[AnySpec]], list[Problem]]:
    """Files of one folder by name, and a problem for each second file with the same name.

    Files whose names are not in `names` are returned too, but have not been read.
    """
    files: dict[str, Loaded[AnySpec]] = {}
    paths, problems = yaml_files(folder)
    for path in paths:
        if path.stem in files:
            message = f"{path.stem!r} is also declared in {files[path.stem].file}: remove one file"
            problems.append(Problem(str(path), 1, 1, DUPLICATE, message))
        elif names is not None and path.stem not in names:
            files[path.stem] = Loaded(path.stem, Document(str(path)))
        else:
            files[path.stem] = load(path, environ)
    return files, problems


def _folder_problems(config_dir: Path) -> list[Problem]:
    # From `os`, which returns False for what may not be accessed.
    if os.path.isdir(config_dir):  # noqa: PTH112
        return []
    if os.path.exists(config_dir):  # noqa: PTH110
        message = "this is not a folder: --config takes the folder with sources/ and pipelines/"
    else:
        message = "no such folder: give --config DIR, or start with `forebay init .`"
    return [Problem(str(config_dir), 1, 1, "no-config-folder", message)]


def _unknown(what: str, name: str, known: Mapping[str, object], config_dir: Path) -> str:
    guess = nearest(name, known)
    way_out = f" (did you mean {guess}?)" if guess else ""
    there = ", ".join(known) or "none"
    return f"no {what} {shown(name)} in {config_dir}/{what}s{way_out}. Declared: {there}"
