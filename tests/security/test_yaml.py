"""Hostile YAML is a problem with a place within a second, and stops no other pipeline."""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from support.cpu_limits import cpu_limit
from support.declarations import declarations, dump, write
from support.projects import Project, clicks_source, declared_project

from forebay.config.checks.crosscheck import check_source
from forebay.config.checks.loaded import load_source
from forebay.config.load import load_one, load_project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.yaml.problem_text import problems_text
from forebay.config.yaml.problems import PROBLEMS_MAX, Problem
from forebay.dags.sync import sync
from forebay.datatasks.sources.memory.kind import MemoryKind
from forebay.errors import ConfigError


class Hostile(NamedTuple):
    """A file. line: of its first problem; None where any will do. code: of that problem."""

    name: str
    content: bytes
    line: int | None
    code: str


def _merge_keys() -> str:
    """Each mapping merges the one before twice: 2^60 pairs."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 60)]
    return "\n".join(lines)


def _aliases() -> str:
    """Each list holds the one before ten times: 10^60 texts."""
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 60)]
    return "\n".join(lines)


_NUMBERS = {
    "octal": ("job: {roles: {data: {count: 010}}}", "is 8 in YAML"),
    "base 60": ("job: {roles: {data: {count: 1:30}}}", "is 90 in YAML"),
    "base 60 float": ("job: {roles: {data: {count: 1:30.5}}}", "is 90.5 in YAML"),
    "digits": ("job: {roles: {data: {count: " + "9" * 1_000_000 + "}}}", "too long"),
    "bits": ("job: {roles: {data: {count: 0x" + "f" * 50 + "}}}", "64 bits"),
    "negative": ("model: {seed: -9223372036854775809}", "64 bits"),
    "exponent": ("model: {seed: 1.0e+999999}", "finite number"),
    "infinity": ("model: {seed: .inf}", "finite number"),
    "not a number": ("model: {dense_learning_rate: .nan}", "finite number"),
    "exponent as text": ("model: {dense_learning_rate: 1e999999}", "finite number"),
    "calendar": ("dataset: {start: 9999-12-31T23:59:59-23:00}", "outside the calendar"),
    "calendar below": ("dataset: {start: 0001-01-01T00:00:00+23:00}", "outside the calendar"),
    "calendar quoted": ("dataset: {start: '9999-12-31T23:59:59-23:00'}", "outside the calendar"),
    "last year": ("dataset: {start: 9999-12-31}", "years 1000 to 9000"),
    "year 0": ("dataset: {start: 0000-01-01}", "looks like a timestamp"),
    "year 10000": ("dataset: {start: 10000-01-01}", "write a time as"),
    "zone 99": ("dataset: {start: 2026-01-01T00:00:00+99:00}", "looks like a timestamp"),
    "duration": ("schedule: {grace: " + "9" * 5_000 + "d}", "a duration is"),
    "duration digits": ("schedule: {grace: \uff12\uff14h}", "a duration is"),
    "runs": ("schedule: {active_runs_max: 99999999999}", "must be at most 10000"),
    "pool": ("schedule: {pool: " + "a" * 300 + "}", "at most 256 characters"),
    "time zone": ("dataset: {timezone: ../../etc/passwd}", "unknown IANA time zone"),
}
NUMBERS = [(name, text, words) for name, (text, words) in _NUMBERS.items()]

TEXTS: list[Hostile] = [
    Hostile("nested merge keys", _merge_keys().encode(), None, "syntax"),
    Hostile("alias bomb", _aliases().encode(), None, "syntax"),
    Hostile("nested lists", b"a: " + b"[" * 900 + b"]" * 900, 1, "syntax"),
    Hostile("very nested lists", b"a: " + b"[" * 300_000, 1, "syntax"),
    Hostile("nested mappings", b"{a: " * 100_000, 1, "syntax"),
    Hostile("deep block", "".join(f"{' ' * n}a:\n" for n in range(1_000)).encode(), 32, "syntax"),
    Hostile("nested dashes", b"a:\n" + b"- " * 100_000, 2, "syntax"),
    Hostile("questions", b"? " * 100_000, 1, "syntax"),
    Hostile("an anchor in itself", b"a: &a {b: *a}", 1, "syntax"),
    Hostile("a merge key in itself", b"a: &a {<<: *a}", 1, "syntax"),
    Hostile("doubled anchor", b"a: &a 1\nb: &a 2\nc: *a\n", None, ""),
    Hostile("base 60 of 400,000 parts", b"count: 1" + b":1" * 400_000, 1, "text"),
    Hostile("base 60 of 4,000 parts", b"count: 1" + b":1" * 4_000, 1, "syntax"),
    Hostile("many keys", b"".join(b"k%d: 1\n" % n for n in range(100_000)), None, "syntax"),
    Hostile("unknown keys", b"".join(b"keyy%d: 1\n" % n for n in range(20_000)), 1, "unknown-key"),
    Hostile("one key again", b"kind: a\n" * 20_000, 2, "duplicate-key"),
    Hostile("no text as keys", b"".join(b"%d: 1\n" % n for n in range(20_000)), 1, "key-not-text"),
    Hostile("a long key", b"a" * 100_000 + b": 1", 1, "syntax"),
    Hostile("a long text", b"description: " + b"a" * 1_000_000, 1, "text"),
    Hostile("a huge file", b"# a comment\n" * 1_000_000, 1, "unreadable"),
    Hostile("variables without end", b'description: "' + b"${A:-" * 1_900 + b'"', 1, "variable"),
    Hostile(
        "variables that are not set",
        b"description: a\nx: [" + b", ".join(b'"${N%d}"' % n for n in range(30_000)) + b"]",
        2,
        "unknown-key",
    ),
    Hostile("a tag", b"a: !!python/object/apply:os.system [id]", 1, "tag"),
    Hostile("a tag of a name", b"a: !!python/name:os.system", 1, "tag"),
    Hostile("a module", b"a: !!python/module:antigravity", 1, "tag"),
    Hostile("a directive", b"%YAML 9.9\n---\na: 1\n", None, "syntax"),
    Hostile("two documents", b"a: 1\n---\nb: 1\n", 2, "syntax"),
    Hostile("a tab", b"a:\n\tb: 1\n", 2, "syntax"),
    Hostile("U+0000", b"a: b\0c\n", 1, "syntax"),
    Hostile("U+0000 as an escape", b'description: "a\\0b"\n', 1, "text"),
    Hostile("a surrogate as an escape", b'description: "\\ud800"\n', 1, ""),
    Hostile("beyond Unicode", b'description: "\\U00110000"\n', 1, "syntax"),
    Hostile("a control character", b"a: 1\nb: \x07\n", 2, "syntax"),
    Hostile("Latin-1", b"a: 1\ndescription: caf\xe9\n", 2, "unreadable"),
    Hostile("UTF-16", "kind: parquet\n".encode("utf-16"), 1, "unreadable"),
    Hostile("a cut character", b"kind: \xe2\x82", 1, "unreadable"),
    Hostile("bytes", random.Random(7).randbytes(100_000), None, ""),
    Hostile("nothing", b"", 1, "empty-file"),
    Hostile("a list", b"- 1\n", 1, "not-a-mapping"),
]

_WORDS = (
    b"<<: *a", b"&a ", b"*a", b"!!set ", b"!!python/object:os.system ", b"[", b"]", b"{", b"}",
    b"- ", b"? ", b": ", b"|\n", b">-\n", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"# ", b"'", b'"',
    b"---\n", b"...\n", b"%TAG ! x\n", b"9999-12-31T23:59:59-23:00", b"0000-01-01", b".nan",
    b"-.inf", b"010", b"1:30", b"0x" + b"f" * 40, b"9" * 50, b"9" * 5_000, b"1e999", b"~", b"null",
    b"yes", b"${HOME}", b"${A:-", b"$${", b"../../x", b"\\ud800", b"\\0", b"\n", b"\r", b"  ",
    b"\xe2\x80\xa8", b"{date}", b"{date:%Q}", b"[z-a]", b"[!]", b"**/" * 50, b"*" * 200,
    b"2026-03-01", b"-1", b"1d", b"",
)  # fmt: skip


def mutated(content: bytes, seed: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(seed.choice((1, 1, 2, 3, 8))):
        at = seed.randrange(len(changed) + 1)
        end = min(len(changed), at + seed.choice((0, 0, 1, 3, 10, 80)))
        kind = seed.randrange(5)
        if kind == 0:
            changed[at:end] = seed.randbytes(end - at or 1)
        elif kind == 1:
            changed[at:end] = b""
        elif kind == 2:
            changed[at:at] = bytes(changed[at:end])
        else:
            changed[at:end] = seed.choice(_WORDS)
    return bytes(changed)


SECONDS_MAX = 2.0
FOLDERS = ("sources", "pipelines")


@contextmanager
def quickly(what: str, seconds: float = SECONDS_MAX) -> Iterator[None]:
    """Of this thread's time in a process of its own: others may have the machine, and what other
    tests left in memory is nothing that a command would go through to find garbage."""
    gc.freeze()
    try:
        with cpu_limit(what, seconds, time.thread_time):
            yield
    finally:
        gc.unfreeze()


@pytest.fixture(scope="module")
def warm() -> None:
    """What is imported and read once: the kinds, and the names of the time zones."""
    load_project(Path("config"))


@pytest.fixture
def project(tmp_path: Path, warm: None) -> Project:
    return declared_project(tmp_path)


@pytest.fixture
def config(project: Project) -> Path:
    return project.root / "config"


@pytest.mark.guarantee(
    "YAML that expands without end, is too deep or too large, is not text, or is a pipe",
    "a problem with file, line and column within a second",
)
@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("hostile", TEXTS, ids=[each.name for each in TEXTS])
def test_a_hostile_text_is_a_problem_with_a_place(
    folder: str, hostile: Hostile, config: Path
) -> None:
    (config / folder / "bad.yaml").write_bytes(hostile.content)
    with quickly(f"load {hostile.name}"):
        loaded = load_project(config)
    problems = [each for each in loaded.problems if Path(each.file).stem == "bad"]
    assert any(
        hostile.code in {"", each.code} and hostile.line in {None, each.line} for each in problems
    ), problems
    assert len(problems) <= PROBLEMS_MAX + 1
    assert all(each.line >= 1 and each.column >= 1 for each in problems)
    assert max(len(str(each)) for each in problems) < 2_000
    with quickly(f"print {hostile.name}", 2.0):
        assert problems_text(problems)
    assert {Path(each.file).stem for each in loaded.problems} == {"bad"}
    assert loaded.pipeline("ads").source_names == ["history", "clicks"]
    with pytest.raises(ConfigError, match=r"bad\.yaml:\d+:\d+: "):
        (loaded.source if folder == "sources" else loaded.pipeline)("bad")


@pytest.mark.parametrize(("name", "text", "words"), NUMBERS, ids=[name for name, _, _ in NUMBERS])
def test_a_hostile_number_says_what_is_expected(
    name: str, text: str, words: str, config: Path
) -> None:
    (config / "pipelines" / "bad.yaml").write_text(text)
    with quickly(name):
        problems = load_project(config).problems
    (problem,) = (p for p in problems if Path(p.file).stem == "bad" and p.code != "missing-key")
    assert words in problem.message
    assert problem.column == text.rindex(": ") + 3


def test_a_vocabulary_of_many_values_is_quick(project: Project, config: Path) -> None:
    values = [f"value{number}" for number in range(40_000)]
    features = project.pipeline["dataset"]["features"]
    features["user"] = {"encode": "vocabulary", "values": values}
    project.write_pipeline()
    with quickly("a vocabulary"):
        assert load_project(config).problems == []
    values[-1] = values[0]
    project.write_pipeline()
    with quickly("a vocabulary with a value that is there twice"):
        (problem,) = load_project(config).problems
    assert "'value0' is in the vocabulary twice" in problem.message
    features["user"]["values"] = [[]] * 40_000
    project.write_pipeline()
    with quickly("a vocabulary of lists", 2 * SECONDS_MAX):
        problems = load_project(config).problems
    assert len(problems) == PROBLEMS_MAX + 1
    assert "there are more problems" in problems[-1].message


def test_features_of_columns_that_are_not_there_are_quick(project: Project, config: Path) -> None:
    columns = {f"column_{number}": "int" for number in range(2_000)}
    for name in ("history", "clicks"):
        spec = clicks_source()
        project.write_source(name, {**spec, "columns": {**spec["columns"], **columns}})
    project.pipeline["dataset"]["features"] = {
        f"colunm_{number}": {"encode": "numeric"} for number in range(2_000)
    }
    project.write_pipeline()
    with quickly("features", 3 * SECONDS_MAX):  # three files
        problems = load_project(config).problems
    assert len(problems) == PROBLEMS_MAX + 1
    assert any(each.hint.startswith("column_") for each in problems)


def special_files(folder: Path) -> list[str]:
    """What is no file, or cannot be read, and looks like a declaration."""
    os.mkfifo(folder / "pipe.yaml")
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "dangling.yaml").symlink_to("nothing")
    (folder / "zero.yaml").symlink_to("/dev/zero")
    (folder / "terminal.yaml").symlink_to("/dev/tty")
    (folder / "folder.yaml").mkdir()
    return ["dangling", "folder", "loop", "pipe", "terminal", "zero"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_no_file_is_a_problem_and_nobody_waits(folder: str, config: Path) -> None:
    names = special_files(config / folder)
    (config / folder / ".#ads.yaml").symlink_to("ada@host.1234")  # an editor's lock
    with quickly("special files"):
        loaded = load_project(config)
    assert [Path(each.file).stem for each in loaded.problems] == names
    assert {each.code for each in loaded.problems} == {"unreadable"}
    assert loaded.pipeline("ads").source_names == ["history", "clicks"]
    dags = config.with_name("dags")
    assert "ads" in sync(config, dags).written
    assert sync(config, dags).written == []


def test_a_folder_that_is_none_is_a_problem(config: Path) -> None:
    sources = config / "sources"
    shutil.rmtree(sources)
    sources.write_text("")
    found = {each.file: each.message for each in load_project(config).problems}
    assert "the folder cannot be read" in found[str(sources)]


def test_a_broken_kind_is_a_problem_of_its_sources_alone(
    project: Project, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write_source("other", {**clicks_source(), "kind": "memory", "options": {"table": "t"}})

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a fault of theirs")

    monkeypatch.setattr(MemoryKind.Options, "model_validate", broken)
    loaded = load_project(config)
    (problem,) = loaded.problems
    assert (Path(problem.file).stem, problem.code) == ("other", "broken-kind")
    assert "a fault of theirs" in problem.message
    assert loaded.pipeline("ads")


# One of each sort: that blows up, is deep, is no text, cannot be read.
NEIGHBOURS = [
    each
    for each in TEXTS
    if each.name
    in {"nested merge keys", "alias bomb", "very nested lists", "UTF-16", "a huge file", "nothing"}
]


PARSE = """
import sys
from forebay.dags.factory import pipeline
print(pipeline("ads", sys.argv[1]).dag_id)
"""


@pytest.mark.guarantee(
    "a bad file, source kind or shared source", "it stops the pipelines that read it, and no others"
)
def test_commands_stages_and_dags_of_other_pipelines_go_on(project: Project, config: Path) -> None:
    for folder in FOLDERS:
        special_files(config / folder)
        for number, hostile in enumerate(NEIGHBOURS):
            (config / folder / f"bad{number}.yaml").write_bytes(hostile.content)
    (config / "misplaced.yaml").write_text("kind: parquet\n")
    with quickly("one pipeline alone"):
        assert load_one(config, "ads").problems == []
    checked = project.forebay("check", check=False)
    assert checked.returncode == 1
    for number, _ in enumerate(NEIGHBOURS):
        for folder in FOLDERS:
            assert f"{folder}/bad{number}.yaml:" in checked.stdout
    assert "config/misplaced.yaml:1:1: " in checked.stdout
    assert project.forebay("explain", "ads").returncode == 0
    stage = ("stage", "source", "ads", "2026-03-01", "history", "--asked-by", "x#0", "--ready")
    done = project.forebay(*stage, check=False)
    assert '"source":"history"' in done.stdout, done.stderr
    assert "ads" in sync(config, project.root / "dags").written
    command = [sys.executable, "-c", PARSE, str(config)]
    environment = {**os.environ, "AIRFLOW_HOME": str(project.root / "airflow")}
    parsed = subprocess.check_output(command, env=environment, text=True, timeout=120)
    assert parsed.splitlines()[-1] == "ads"


def test_a_shared_source_stops_those_that_read_it_only(project: Project, config: Path) -> None:
    text = (config / "pipelines" / "ads.yaml").read_text()
    (config / "pipelines" / "other.yaml").write_text(text.replace("history", "own"))
    (config / "sources" / "own.yaml").write_text((config / "sources" / "history.yaml").read_text())
    (config / "sources" / "history.yaml").write_text("a: [")
    project.forebay("explain", "other")
    refused = project.forebay("explain", "ads", check=False)
    assert refused.returncode == 1
    assert "sources/history.yaml:" in refused.stderr
    (config / "sources" / "clicks.yaml").write_text("a: [")
    for name in ("ads", "other"):
        assert project.forebay("explain", name, check=False).returncode == 1


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Path:
    config = tmp_path_factory.mktemp("mutated") / "config"
    write(config, declarations())
    return config


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        *((seed, 1_000) for seed in (1, 2)),
        *(pytest.param(seed, 10_000, marks=pytest.mark.chaos) for seed in range(100, 110)),
    ],
)
def test_any_mutation_is_a_config_or_problems_with_places(
    written: Path, seed: int, count: int
) -> None:
    print(f"seed {seed}")
    random_of = random.Random(seed)
    files = {file: dump(value).encode() for file, value in declarations().items()}
    chosen = [random_of.choice(sorted(files)) for _ in range(count)]
    usable = 0
    for number, file in enumerate(chosen):
        content = mutated(files[file], random_of)
        (written / file).write_bytes(content)
        with quickly(f"seed {seed}, mutation {number} of {file}"):
            problems, spec = loaded_alone(written / file)
        (written / file).write_bytes(files[file])
        lines = content.count(b"\n") + content.count(b"\r") + content.count(b"\xe2\x80\xa8") + 2
        assert problems or spec is not None
        for problem in problems:
            assert 1 <= problem.line <= lines, (number, problem)
            assert 1 <= problem.column <= len(content) + 2, (number, problem)
            assert problem.message
            str(problem).encode()
        usable += not problems
    assert 0 < usable < count


def loaded_alone(path: Path) -> tuple[list[Problem], SourceSpec | PipelineSpec | None]:
    """What `forebay check` says about one file, and what it declares."""
    if path.parent.name == "pipelines":
        project = load_one(path.parent.parent, path.stem)
        own = [each for each in project.problems if Path(each.file) == path]
        return own, project.pipeline_files[path.stem].spec
    loaded = load_source(path, {})
    return [*loaded.problems, *check_source(loaded)], loaded.spec
