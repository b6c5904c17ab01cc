"""No name from outside leads out of the home: each is refused by a message that names it.

Commands and their parameters are found in the argument parser. A new one has to say below what it
takes, and is tried like the others.
"""

from __future__ import annotations

import inspect
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import ValidationError
from support.projects import declared_project

from forebay.cli import build_app, run
from forebay.config.load import load_project
from forebay.dags.sync import sync
from forebay.errors import UsageError
from forebay.executors.job.request import JobRequest
from forebay.executors.stages.results import RequestedWindow
from forebay.home.paths import Home
from forebay.operators.runs.stage_request import reprocess_of
from forebay.system.names import is_name, is_one_line, is_window_key, shown

# No name of ours is one of these. What cannot be an argument of a process is in NOT_ARGUMENTS.
NO_NAMES = (
    "../x", "../../models/ads", "/etc", "/etc/passwd", "a/b", "a\\b", "..\\x", "C:\\x", "", ".",
    "..", "...", ".hidden", "~", "~root", "-rf", "--help", "*", "a*", "?", "[a]", "${HOME}",
    "$(id)", "`id`", "a;b", "a b", " a", "a\n", "\na", "a\r", "a\tb", "%2e%2e", "%2e%2e%2fx",
    "..%c0%af", "\N{CYRILLIC SMALL LETTER A}ds", "\N{FULLWIDTH FULL STOP}\N{FULLWIDTH FULL STOP}",
    "\N{FRACTION SLASH}etc", "\N{FULLWIDTH DIGIT TWO}026-03-01", "a\N{RIGHT-TO-LEFT OVERRIDE}b",
    "\x1b[2J", "a" * 64 + "/" + "b" * 4000, "x" * 4000, "\udcff",
)  # fmt: skip
# One of each sort, for what takes milliseconds each.
FEW = (
    "../x", "/etc", "a/b", "", "..", "-rf", "a\n", "%2e%2e", "\N{CYRILLIC SMALL LETTER A}ds",
    "x" * 4000, "\udcff",
)  # fmt: skip
NOT_ARGUMENTS = ("a\0b", "\0", "../x\0")


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content = b""
        if stat.S_ISLNK(mode):
            content = bytes(path.readlink())
        elif stat.S_ISREG(mode):
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (mode, content)
    return found


# What the text parameters of all commands are. Names and windows become parts of paths.
NAMES = {"pipeline", "source", "line", "job", "process", "role"}
WINDOWS = {"window", "first", "last"}
RANGE = {"first": "--from", "last": "--to"}
# Stored in rows as they are.
LINES_OF_TEXT = {"asked_by", "claim", "run", "why"}
# Read as something else that no hostile text is: JSON, an address, a duration, one of few words.
OTHERS = {"waiting", "previous"}
# Where the caller wants a file or a folder, whose name is hers to choose.
CHOSEN = {"subject", "name", "row", "origin"}
SOUND = {
    "pipeline": "ads",
    "source": "history",
    "line": "main",
    "job": "ads",
    "process": "trainer-0",
    "role": "trainer",
    "limits": "cpu=1",
    "window": "2026-03-01",
    "first": "2026-03-01",
    "last": "2026-03-02",
    "asked_by": "ads/scheduled#0",
    "claim": "ads/scheduled/data_executors/0",
    "previous": "none",
    "generation": "1",
    "folder": "copy",
    "model": "model",
    "dags": "dags",
    "subject": "ads",
}


APP = typer.main.get_command(build_app())


@dataclass(frozen=True)
class Parameter:
    command: tuple[str, ...]
    name: str
    option: str
    required: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return " ".join([*self.command, self.option or self.name.upper()])

    def arguments(self, value: str) -> list[str]:
        """A command line that is sound but for this value."""
        given = {name: (option, SOUND[name]) for name, option in self.required}
        if self.name in RANGE:
            given |= {name: (option, SOUND[name]) for name, option in RANGE.items()}
        given[self.name] = (self.option, value)
        options = [f"{option}={text}" for option, text in given.values() if option]
        others = [text for option, text in given.values() if not option]
        return [*self.command, *options, "--", *others]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), (*path, name))


def parameters() -> Iterator[Parameter]:
    """Every parameter of every command that takes a text and no number, path or choice."""
    for path, command in commands(APP):
        required = tuple((each.name, option_of(each)) for each in command.params if each.required)
        for each in command.params:
            if each.bare_type() == "str":
                yield Parameter(path, each.name, option_of(each), required)


def option_of(parameter: Any) -> str:
    return parameter.opts[0] if parameter.param_type_name == "option" else ""


ALL = list(parameters())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project and a home, and the working folder beside them."""
    project = declared_project(tmp_path / "project")
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("FOREBAY_CONFIG", str(project.root / "config"))
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    (tmp_path / "models" / "ads").mkdir(parents=True)
    (tmp_path / "models" / "ads" / "kept").write_text("somebody else's")
    return tmp_path


def outside(place: Path, *folders: str) -> dict[str, tuple[int, bytes]]:
    """What is there besides these folders."""
    return {path: what for path, what in tree(place).items() if not path.startswith(folders)}


def test_every_text_that_a_command_takes_is_known_here() -> None:
    """What is no text is a number, a date, one of a few words, or a path of the caller's choice."""
    assert len(ALL) > 50
    kinds = {each.bare_type() for _, command in commands(APP) for each in command.params}
    enumerations = {"OnStale", "OutputFormat", "SchemaOf", "Shell"}
    assert kinds == {"str", "list[str]", "Path", "int", "bool", "datetime", *enumerations}
    assert {each.name for each in ALL} == NAMES | WINDOWS | LINES_OF_TEXT | OTHERS | CHOSEN


def is_sound(name: str, value: str) -> bool:
    if name in NAMES:
        return is_name(value)
    if name in WINDOWS:
        return is_window_key(value)
    return name in LINES_OF_TEXT and is_one_line(value)


@pytest.mark.guarantee(
    "a name, window or job id that leads out of the home (command line, stage, environment, "
    "conf, YAML, file name, row)",
    "it is refused with its value; nothing is read, written or removed",
)
@pytest.mark.parametrize(
    "parameter",
    [each for each in ALL if each.name not in CHOSEN],
    ids=[str(e) for e in ALL if e.name not in CHOSEN],
)
def test_no_command_takes_such_a_value(
    parameter: Parameter, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(place)
    for value in (*FEW, *NOT_ARGUMENTS):
        not_given = not value and parameter.name in RANGE
        if not_given or is_sound(parameter.name, value):
            continue
        code = run(parameter.arguments(value))
        said = capsys.readouterr()
        # `run` says what it is about to read before it looks.
        out = said.out.removeprefix("reading pipeline ads …\n")
        assert (code, out) == (1, ""), f"{parameter} {value!r}: {said}"
        assert "unexpected" not in said.err
        named = {parameter.option} if parameter.name in OTHERS else {shown(value)[1:-4]}
        assert any(each in said.err for each in named), f"{parameter} {value!r}: {said.err}"
        assert said.err.count("\n") == 1
        assert len(said.err) < 2_000
    assert tree(place) == before


@pytest.mark.parametrize("name", sorted(LINES_OF_TEXT))
def test_texts_of_a_scheduler_are_rows_and_never_paths(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(place)
    for parameter in (each for each in ALL if each.name == name):
        for value in ("../../x", "/etc/x", "-rf", "a*b", "\N{CYRILLIC SMALL LETTER A}ds"):
            assert is_sound(name, value)
            run(parameter.arguments(value))
            assert "unexpected" not in capsys.readouterr().err
    assert outside(place, "home") == before


def test_no_path_below_a_home_is_made_of_such_a_name(tmp_path: Path) -> None:
    home = Home(tmp_path)
    methods = {
        name: inspect.signature(method).parameters
        for name, method in inspect.getmembers(home, inspect.ismethod)
        if name != "from_environment" and not name.startswith("_")
    }
    assert set(methods) >= {"lines", "line", "model", "job"}
    sound = {**SOUND, "generation": 1, "job_id": "ads.main.2026-03-01.g1"}
    for method, known in methods.items():
        for name in known:
            if name == "generation":
                continue
            arguments = {each: sound[each] for each in known}
            assert getattr(home, method)(**arguments).is_relative_to(tmp_path)
            for value in (*NO_NAMES, *NOT_ARGUMENTS):
                if name == "job_id" and value == "x" * 4000:
                    continue
                with pytest.raises(UsageError) as raised:
                    getattr(home, method)(**arguments | {name: value})
                assert shown(value) in str(raised.value)


def test_forget_removes_nothing_by_a_path(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(place)
    assert run(["forget", "ads", "../../models/ads"]) == 1
    assert "'../../models/ads'" in capsys.readouterr().err
    assert run(["forget", "ads", "2026-03-01"]) == 1  # a window, and none of the ledger
    assert "has no plan for '2026-03-01'" in capsys.readouterr().err
    assert outside(place, "home") == before


@pytest.mark.parametrize("value", [*NO_NAMES, *NOT_ARGUMENTS])
def test_the_conf_of_a_run_takes_no_such_key_or_value(value: str) -> None:
    with pytest.raises(UsageError, match="write true or false"):
        reprocess_of({"reprocess": value})
    with pytest.raises(UsageError, match="unknown conf key"):
        reprocess_of({value: True})


@pytest.mark.parametrize("value", ["a\0b", "a\nb", "\udcff", "x" * 4000])
def test_windows_that_others_wait_for_are_one_line_each(value: str) -> None:
    with pytest.raises(ValidationError):
        RequestedWindow(window="2026-03-01", asked_by=value)


@pytest.mark.parametrize("value", [*NO_NAMES, *NOT_ARGUMENTS])
def test_no_request_of_a_job_has_such_an_id_or_line(value: str) -> None:
    parts: dict[str, Any] = {"pipeline_name": "ads", "home": "/h", "project_root": "/p"}
    parts |= {"pipeline": {}, "sources": {}, "windows": []}
    for names in ({"job_id": value}, {"job_id": "a.b", "line": value}):
        with pytest.raises((ValidationError, ValueError)):
            JobRequest(**parts, **names)


@pytest.mark.parametrize("kind", ["sources", "pipelines"])
def test_files_with_such_names_are_problems_and_concern_nobody_else(
    kind: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = place / "project" / "config"
    text = next((config / kind).glob("*.yaml")).read_text()
    short = [each for each in NO_NAMES if 0 < len(each.encode(errors="replace")) < 200]
    names = [each for each in short if not set("/\0") & set(each)]
    assert len(names) > 20
    for name in names:
        (config / kind / f"{name}.yaml").write_text(text)
    project = load_project(config)
    wrong = {Path(problem.file).stem for problem in project.problems if problem.code == "name"}
    assert wrong == {Path(f"{name}.yaml").stem for name in names}
    assert project.pipeline("ads").source_names == ["history", "clicks"]
    assert run(["check"]) == 1
    assert run(["explain", "ads"]) == 0
    capsys.readouterr()
    before = outside(place, "dags")
    sync(config, place / "dags")
    assert outside(place, "dags") == before


def test_streams_sources_and_markers_with_such_names_are_problems(place: Path) -> None:
    config = place / "project" / "config"
    pipeline, source = config / "pipelines" / "ads.yaml", config / "sources" / "history.yaml"
    sound = pipeline.read_text(), source.read_text()
    for value in NO_NAMES:
        if "\udcff" in value:
            continue  # a file of UTF-8 cannot hold it
        written = json.dumps(value)
        for old, new in (
            ("    history:\n", f"    {written}:\n"),
            ("- history\n", f"- {written}\n"),
        ):
            assert old in sound[0]
            pipeline.write_text(sound[0].replace(old, new))
            assert [p.file for p in load_project(config).problems] == [str(pipeline)], value
        pipeline.write_text(sound[0])
        if "/" in value or value in {"", ".", ".."}:
            source.write_text(f"{sound[1]}ready: {{marker: {written}}}\n")
            assert [p.file for p in load_project(config).problems] == [str(source)], value
            source.write_text(sound[1])


def test_what_a_caller_chooses_is_no_unexpected_error(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(outside(place, "project", "home"))
    for value in NO_NAMES:
        for arguments in (
            ["report", "--", value],
            ["report", "--from=2026-03-01", "--to=2026-03-01", "--", value],
            ["init", f"--name={value}", "--from=parquet://nothing", "--", "new"],
        ):
            assert run(arguments) == 1
            assert "unexpected" not in capsys.readouterr().err
    assert set(outside(place, "project", "home")) == before


def test_names_in_the_environment_are_refused_too(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(place)
    for variable, arguments in (
        ("FOREBAY_LINE", ["models", "ls", "ads"]),
        ("FOREBAY_WINDOW", ["dead", "ls", "ads"]),
        ("FOREBAY_CLAIM", ["stage", "submit", "ads", "2026-03-01", "--previous=none"]),
    ):
        with monkeypatch.context() as one:
            one.setenv(variable, "../x\n")
            assert run(arguments) == 1
            assert r"../x\n" in capsys.readouterr().err
    assert tree(place) == before
