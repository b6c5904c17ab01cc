"""`forebay check`: every problem of every declaration, with its position and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Annotated

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, is_terminal, note, option
from forebay.config.load import Project, load_project
from forebay.config.yaml.problem_text import caret_lines
from forebay.config.yaml.problems import Problem, errors
from forebay.errors import ConfigError, DataError, ForebayError
from forebay.system.output.counted import counted
from forebay.system.output.text import columns

# What is wrong with the storage, and not with a declaration.
_BAD_DATA = frozenset({"unreadable", "undecodable", "row-times", "event-times"})


def check(
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    connect: Annotated[
        bool, option("--connect", help="Compare with the storage too, and sample its rows.")
    ] = False,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Check all declarations.

    With --connect, types, paths and topics are compared with the storage, and a sample of each
    pipeline's rows with its declaration: labels, vocabularies, nulls, and how many of a stream's
    positives are known when it publishes them. Exits with 0 if everything is usable, 1 if something
    has to be changed, 3 if data is bad, 4 if a storage system does not respond.
    """
    project = load_project(config)
    declared = [*project.problems, *_nothing_declared(project)]
    found = list(declared)
    failures: list[ForebayError] = []
    lines: list[str] = []
    if connect:
        wrong_sources = set[str]()
        with working("comparing the declarations with the storage"):
            found += _connect(project, failures, wrong_sources)
        with working("sampling rows"):
            found += _sample(project, failures, wrong_sources, lines)
    wrong = errors(found)
    _print(Output(output), project, found, wrong, lines)
    for failure in failures:
        note(f"error: {failure}")
    bad_data = [each for each in wrong if each.code in _BAD_DATA and each not in declared]
    codes = {failure.exit_code for failure in failures}
    codes |= {DataError.exit_code} if bad_data else set()
    codes |= {ConfigError.exit_code} if len(bad_data) < len(wrong) else set()
    if codes:  # what has to be changed here comes first, then the storage that does not respond
        is_ours = ConfigError.exit_code in codes
        raise typer.Exit(ConfigError.exit_code if is_ours else max(codes))


def _nothing_declared(project: Project) -> list[Problem]:
    """An empty folder is fine for Airflow, which waits for files; a person mistyped it."""
    if project.problems or project.source_files or project.pipeline_files:
        return []
    message = (
        "nothing is declared here: files belong in sources/ and pipelines/ of this folder; "
        "`forebay init .` writes examples"
    )
    return [Problem(str(project.config_dir), 1, 1, "nothing-declared", message)]


def _connect(
    project: Project, failures: list[ForebayError], wrong_sources: set[str]
) -> Iterable[Problem]:
    """Findings of every usable source; failures to reach its storage go into `failures`.

    The names of sources with either are added to `wrong_sources`.
    """
    from forebay.datatasks.planning.open_source import open_source
    from forebay.datatasks.sources.common.contract.base import Describes

    for name, spec in project.sources.items():
        try:
            with closing(open_source(spec, project.root)) as source:
                if not isinstance(source, Describes):
                    note(f"source {name!r}: kind {spec.kind!r} does not say what is stored")
                    continue
                findings = source.findings()
        except ForebayError as error:
            failures.append(type(error)(f"source {name!r}: {error}"))
            wrong_sources.add(name)
            continue
        for finding in findings:
            wrong_sources.add(name)
            file, line, column = project.where("sources", name, finding.path)
            yield Problem(file, line, column, finding.code, finding.message, finding.hint)


def _sample(
    project: Project, failures: list[ForebayError], wrong_sources: set[str], lines: list[str]
) -> Iterable[Problem]:
    """Problems in samples of the pipelines whose sources are all fine; figures go into `lines`."""
    from forebay.executors.advice.check import check_data

    for name, pipeline in project.pipelines.items():
        if wrong_sources.intersection(pipeline.source_names):
            continue
        try:
            checked = check_data(project, name)
        except ForebayError as error:
            failures.append(type(error)(f"pipeline {name!r}, a sample of its rows: {error}"))
            continue
        lines += checked.lines
        yield from checked.problems


def _print(
    output: Output,
    project: Project,
    found: Sequence[Problem],
    wrong: Sequence[Problem],
    lines: Sequence[str],
) -> None:
    for problem in found:
        if problem.severity == "note":
            note(str(problem))
    if output.is_json:
        output.json([problem.to_json() for problem in wrong])
        return
    for problem in wrong:
        output.line(str(problem))
        for line in caret_lines(problem, columns()) if is_terminal() else ():
            output.exact(line)
    for line in lines:
        output.line(line)
    counts = (
        f"{counted(len(project.source_files), 'source')}, "
        f"{counted(len(project.pipeline_files), 'pipeline')}"
    )
    if wrong:
        note(f"{counts}: {counted(len(wrong), 'problem')}")
    else:
        output.line(f"{counts}: no problems")
