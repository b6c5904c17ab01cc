"""Loading a project: every problem of every file, one for each mistake, and what stays usable."""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from forebay.config.load import Project, load_one, load_project
from forebay.config.yaml.files import read_text
from forebay.config.yaml.problems import Problem
from forebay.errors import ConfigError

SOURCE = """\
kind: parquet
options:
  path: data
columns: {event: int, at: timestamp, user: string, clicked: int}
event_time: at
"""
PIPELINE = """\
dataset:
  start: 2026-03-01
  event_id: event
  label: {column: clicked}
  streams:
    history: {sources: [history]}
  features:
    user: {encode: hash, buckets: 100}
train: {paradigm: batch}
"""


class Files:
    def __init__(self, root: Path) -> None:
        self.config = root / "config"
        self.write("sources/history.yaml", SOURCE)
        self.write("pipelines/ads.yaml", PIPELINE)

    def write(self, file: str, text: str) -> None:
        path = self.config / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def change(self, file: str, old: str, new: str) -> None:
        text = (self.config / file).read_text()
        assert old in text
        self.write(file, text.replace(old, new))

    def load(self, **environ: str) -> Project:
        return load_project(self.config, environ)

    def problems(self, **environ: str) -> list[tuple[str, int, int, str, str]]:
        return [
            (Path(p.file).name, p.line, p.column, p.code, p.hint)
            for p in self.load(**environ).problems
        ]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_good_project(files: Files) -> None:
    project = files.load()
    assert (project.problems, project.root) == ([], files.config.parent)
    assert project.source("history").event_time == "at"
    assert project.pipeline("ads").dataset.start == datetime(2026, 3, 1, tzinfo=UTC)
    assert project.pipeline("ads").name == "ads"
    file = str(files.config / "sources/history.yaml")
    assert project.where("sources", "history", ("columns", "user")) == (file, 4, 38)
    assert project.where("sources", "history", ("options", "window_path"))[1:] == (2, 1)


def test_all_problems_of_all_files_at_once(files: Files) -> None:
    files.change("sources/history.yaml", "kind: parquet", "kind: parqet")
    files.change("pipelines/ads.yaml", "start: 2026-03-01", "start: soon")
    files.change("pipelines/ads.yaml", "encode: hash", "encode: hsh")
    files.change("pipelines/ads.yaml", "paradigm: batch", "paradim: batch, minibatch_rows: 0")
    assert files.problems() == [
        ("history.yaml", 1, 7, "unknown-kind", "parquet"),
        ("ads.yaml", 2, 10, "wrong-value", ""),
        ("ads.yaml", 8, 20, "wrong-value", "hash"),
        ("ads.yaml", 9, 9, "unknown-key", "paradigm"),
        ("ads.yaml", 9, 41, "wrong-value", ""),
    ]


def test_several_missing_keys_are_all_named(files: Files) -> None:
    files.write("sources/history.yaml", "kind: kafka\noptions: {}\n")
    found = [p.message for p in files.load().problems if "history" in p.file]
    assert found == [
        "key 'columns' is missing: add it",
        "key 'bootstrap' is missing in options: add it",
        "key 'topic' is missing in options: add it",
    ]


@pytest.mark.parametrize(
    ("old", "new", "place", "code", "hint"),
    [
        ("event_id: event", "event_id: 5", (3, 13), "wrong-type", '"5"'),
        ("event_id: event", "event_id: [event, 5]", (3, 21), "wrong-type", '"5"'),
        ("event_id: event", "event_id: {a: 1}", (3, 13), "wrong-type", ""),
        ("{column: clicked}", "{column: clicked, positive: {a: 1}}", (4, 38), "wrong-type", ""),
        ("{column: clicked}", "{column: c, positive: 1, less_than: 2}", (4, 10), "wrong-value", ""),
        ("{column: clicked}", "[clicked]", (4, 10), "wrong-type", ""),
        ("encode: hash, ", "", (8, 5), "missing-key", ""),
        ("{encode: hash, buckets: 100}", "", (8, 10), "wrong-type", ""),
        ("{encode: hash, buckets: 100}", "hash", (8, 11), "wrong-type", ""),
        ("{paradigm: batch}", "", (9, 7), "wrong-type", ""),
        ("buckets: 100", "buckets: yes", (8, 35), "wrong-type", ""),
        ("hash, buckets: 100", "vocabulary, values: [SE, NO]", (8, 45), "wrong-type", '"NO"'),
        ("[history]", "[history, history]", (6, 34), "source-twice", ""),
        ("[history]", "history", (6, 24), "wrong-type", "[history]"),
        ("[history]", "[]", (6, 24), "wrong-value", ""),
        ("start: 2026-03-01", "timezone: Mars\n  start: 2026-03-01", (2, 13), "wrong-value", ""),
        ("start: 2026-03-01", "window: 1w\n  start: 2026-03-01", (2, 11), "wrong-value", "1d"),
        ("dataset:", "name: ads\ndataset:", (1, 1), "key-from-file", ""),
        ("{paradigm: batch}", "{paradigm: mixtur}", (9, 19), "wrong-value", "mixture"),
        ("batch}", "batch, batch_size: 64}", (9, 26), "unknown-key", "minibatch_rows"),
        ("{sources", "{offset: 1 day, sources", (6, 23), "wrong-value", ""),
        ("{sources", "{offset: 99999999999999d, sources", (6, 23), "wrong-value", ""),
        ("{column: clicked}", "{column: clicked, greater_than: .inf}", (4, 42), "wrong-type", ""),
        ("hash, buckets: 100", "bucketise, boundaries: [.nan, 1]", (8, 44), "wrong-type", ""),
        ("train:", "job: {failover: {heartbeat_timeout: 0s}}\ntrain:", (9, 37), "wrong-value", ""),
    ],
)
def test_one_slip_is_one_problem(
    files: Files, old: str, new: str, place: tuple[int, int], code: str, hint: str
) -> None:
    files.change("pipelines/ads.yaml", old, new)
    assert files.problems() == [("ads.yaml", *place, code, hint)]
    assert load_one(files.config, "ads", {}).problems == files.load().problems


def test_a_key_that_was_removed_is_named_with_what_to_do(files: Files) -> None:
    files.change("pipelines/ads.yaml", "train:", "job: {transport: frames}\ntrain:")
    (problem,) = map(str, files.load().problems)
    assert problem == (
        f"{files.config / 'pipelines/ads.yaml'}:9:7: unknown key 'transport' in job; remove it: "
        "rows travel over Arrow Flight"
    )


def test_messages_name_thing_value_and_way_out(files: Files) -> None:
    files.change("pipelines/ads.yaml", "buckets: 100", "buckets: -4")
    files.change("pipelines/ads.yaml", "event_id: event", "event_id: no")
    first, second = map(str, files.load().problems)
    file = files.config / "pipelines/ads.yaml"
    assert first == (
        f"{file}:3:13: dataset.event_id: text or a list is expected, not no (true/false); YAML "
        'reads it that way unless it is quoted (did you mean "no"?)'
    )
    assert second == f"{file}:8:35: dataset.features.user.buckets: -4 must be at least 2"


def test_variables_come_from_the_environment(files: Files) -> None:
    files.change("sources/history.yaml", "path: data", "path: ${DATA}/x/${DAY:-all}/$${keep}")
    problems = files.load(DATA="/d").problems
    assert [p.code for p in problems] == ["wrong-value"]  # a literal brace is no path
    files.change("sources/history.yaml", "/$${keep}", "")
    assert files.load(DATA="/d").source("history").options["path"] == "/d/x/all"
    assert files.load(DATA="/d", DAY="mon").source("history").options["path"] == "/d/x/mon"
    assert files.problems(DTA="/d") == [("history.yaml", 3, 9, "variable-not-set", "DTA")]
    files.change("sources/history.yaml", "${DATA}", "${1x}")
    assert files.problems() == [("history.yaml", 3, 9, "variable", "")]


def test_the_variables_of_a_pipeline_are_its_own_and_its_sources(files: Files) -> None:
    files.change("sources/history.yaml", "path: data", "path: ${DATA}/${DAY:-all}")
    files.change("pipelines/ads.yaml", "buckets: 100", "buckets: '${BUCKETS:-50}'")
    files.write("sources/other.yaml", SOURCE.replace("data", "${OTHER}"))
    project = files.load(DATA="/d", OTHER="/o")
    assert (project.problems, project.variables("ads")) == ([], {"DATA", "DAY", "BUCKETS"})


def test_a_variable_that_is_no_name_is_told_with_its_place(files: Files) -> None:
    roles = "job: {roles: {data: {runtime: {environment: [ACME_TOKEN, 'ACME_*', '${SECRET}']}}}}"
    files.write("pipelines/ads.yaml", f"{PIPELINE}{roles}\n")
    (problem,) = files.load(SECRET="hunter=2").problems
    assert (problem.line, problem.column, problem.code) == (10, 68, "wrong-value")
    assert problem.message.startswith("job.roles.data.runtime.environment[2]: write the name of")
    assert "hunter" not in problem.message


def test_numbers_may_come_from_the_environment(files: Files) -> None:
    files.change("pipelines/ads.yaml", "buckets: 100", "buckets: '${BUCKETS:-50}'")
    feature = files.load(BUCKETS="70").pipeline("ads").dataset.features["user"]
    assert feature.buckets == 70  # type: ignore[union-attr]
    assert files.problems(BUCKETS="x")[0][3] == "wrong-type"


def test_what_comes_from_the_environment_is_not_shown(files: Files) -> None:
    files.change("pipelines/ads.yaml", "buckets: 100", "buckets: '${SECRET}'")
    problem = files.load(SECRET="hunter2").problems[0]
    assert "hunter2" not in problem.message
    assert "${SECRET}" in problem.message


def test_bad_files_leave_the_others_usable(files: Files) -> None:
    files.write("sources/bad.yaml", "kind: [\n")
    project = files.load()
    assert list(project.sources) == ["history"]
    assert project.pipeline("ads").source_names == ["history"]
    with pytest.raises(ConfigError, match=r"source 'bad' is not usable:\n  .*bad\.yaml:2:1"):
        project.source("bad")


def test_a_pipeline_with_a_bad_source_names_the_source_s_problems(files: Files) -> None:
    files.change("sources/history.yaml", "event_time: at", "event_time: att")
    assert files.load().pipelines == {}
    with pytest.raises(ConfigError, match=r"history\.yaml:5:13: .*did you mean at\?"):
        files.load().pipeline("ads")


def test_names_that_are_not_declared(files: Files) -> None:
    with pytest.raises(ConfigError, match=r"no pipeline 'adds' .*did you mean ads\?"):
        files.load().pipeline("adds")
    with pytest.raises(ConfigError, match=r"no source 'zebra' in \S+sources\. Declared: history"):
        files.load().source("zebra")


def test_files_in_wrong_places_or_with_wrong_names(files: Files) -> None:
    files.write("stray.yml", "a: 1\n")
    files.write("notes.txt", "not ours")
    files.write("other/x.yaml", "not ours either")
    files.write("sources/history.yml", SOURCE)
    files.write("sources/2nd.yaml", SOURCE)
    assert files.problems() == [
        ("stray.yml", 1, 1, "misplaced-file", ""),
        ("2nd.yaml", 1, 1, "name", ""),
        ("history.yml", 1, 1, "duplicate-name", ""),
    ]
    for project in (files.load(), load_one(files.config, "ads", {})):
        with pytest.raises(ConfigError, match=r"history\.yml:1:1: "):
            project.pipeline("ads")


def test_unreadable_text_and_missing_folder(files: Files, tmp_path: Path) -> None:
    (files.config / "sources/history.yaml").write_bytes(b"kind: \xff\xfe\n")
    assert files.problems() == [("history.yaml", 1, 7, "unreadable", "")]
    problems = load_project(tmp_path / "nowhere", {}).problems
    assert [(each.code, each.line) for each in problems] == [("no-config-folder", 1)]
    files.write("a_file", "")
    file = files.config / "a_file"
    for project in (load_project(file, {}), load_one(file, "ads", {})):
        assert [problem.code for problem in project.problems] == ["no-config-folder"]
        assert "this is not a folder" in project.problems[0].message


def test_an_empty_project_is_fine(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    project = load_project(tmp_path / "config", {})
    assert (project.sources, project.pipelines, project.problems) == ({}, {}, [])


HASH = "{encode: hash, buckets: 100}"
FAR = (
    "unknown key 'zzz' at the top of the file; known keys: description, dataset, model, train, "
    "job, schedule"
)
UNION = (
    "dataset.label.positive: true or false, a whole number, a number, text or a list is expected, "
    "not a mapping"
)
TWICE = "{encode: vocabulary, values: [se, dk, '7', fi, 7]}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("train:", "optimizer: adam\ntrain:", "*; remove it: embeddings train with Adagrad, all *"),
        ("train:", "batch_size: 64\ntrain:", "*at the top of the file; write train.minibatch_rows"),
        ("batch}", "batch, epochs: 3}", "*in train; remove it: a window's rows are trained on *"),
        ("batch}", "batch, learning_rate: 1}", "*; write model.embedding_learning_rate and *"),
        ("train:", "zzz: 1\ntrain:", FAR),
        ("paradigm: batch", "paradigm: ", "train.paradigm: nothing is not one of batch,*"),
        ("{column: clicked}", "{column: clicked, positive: {}}", UNION),
        (HASH, TWICE, "*value '7' is in the vocabulary twice*"),
        ("buckets: 100", f"buckets: {'x' * 78}", f"*not '{'x' * 78}' (text)"),
        ("buckets: 100", f"buckets: {'x' * 79}", f"*not '{'x' * 76}... (text)"),
    ],
)
def test_what_a_slip_is_called(files: Files, old: str, new: str, message: str) -> None:
    files.change("pipelines/ads.yaml", old, new)
    assert fnmatchcase(files.load().problems[0].message, message)


def test_the_process_s_own_variables_are_the_default(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.change("sources/history.yaml", "path: data", "path: ${DATA_OF_THIS_TEST}")
    monkeypatch.setenv("DATA_OF_THIS_TEST", "there")
    assert load_project(files.config).source("history").options["path"] == "there"


def test_a_pipeline_that_cannot_be_read_or_names_no_source_cannot_run(files: Files) -> None:
    files.change("pipelines/ads.yaml", "history", "of_nobody")
    with pytest.raises(ConfigError, match="of_nobody"):
        files.load().pipeline("ads")
    (files.config / "pipelines" / "ads.yaml").write_text("dataset: [")
    with pytest.raises(ConfigError, match=r"ads\.yaml"):
        files.load().pipeline("ads")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("datetime", "timestamp"), ("integer", "int"), ("Double", "float"), ("varchar", "string")],
)
def test_types_as_others_call_them(files: Files, written: str, meant: str) -> None:
    files.change("sources/history.yaml", "at: timestamp", f"at: {written}")
    assert files.problems()[0][3:] == ("wrong-value", meant)


def test_one_pipeline_alone_opens_no_files_of_others(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = files.load().pipeline("ads")
    opened: list[str] = []

    def reading(path: Path) -> tuple[str, list[Problem]]:
        opened.append(path.name)
        return read_text(path)

    monkeypatch.setattr("forebay.config.checks.loaded.read_text", reading)
    files.write("pipelines/broken.yaml", "dataset: [")
    files.write("sources/other.yaml", "kind: [")
    files.write("sources/other.yml", "a second file of that name")
    one = load_one(files.config, "ads", {})
    assert (one.problems, one.pipeline("ads"), set(one.source_files)) == ([], whole, {"history"})
    assert sorted(opened) == ["ads.yaml", "history.yaml"]
    files.change("pipelines/ads.yaml", "[history]", "[othr]")  # nearest is one that is not read
    assert [each.hint for each in load_one(files.config, "ads", {}).problems] == ["other"]
    files.write("pipelines/ads.yaml", PIPELINE)
    files.write("pipelines/ads.yml", "")
    (problem,) = load_one(files.config, "ads", {}).problems
    assert problem.code == "duplicate-name"


def test_one_pipeline_alone_has_the_problems_of_its_sources_and_variables(files: Files) -> None:
    files.change("sources/history.yaml", "event_time: at", "event_tme: at")
    found = load_one(files.config, "ads", {}).problems
    assert [problem.file for problem in found] == [str(files.config / "sources/history.yaml")]
    assert found == files.load().problems
    files.change("sources/history.yaml", "event_tme: at", "event_time: ${AT}")
    assert load_one(files.config, "ads", {"AT": "at"}).source("history").event_time == "at"
    (problem,) = load_one(files.config, "ads", {}).problems
    assert problem.code == "variable-not-set"
