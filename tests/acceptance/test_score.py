"""An exported model: loads without forebay, scores raw rows like the trainer, names wrong rows."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.learning import dataset, layout_of, make_towers, record_batch, source

from forebay.cli import run
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.served import to_minibatch

COLUMNS = {
    "user": "string",
    "age": "int",
    "price": "float",
    "mobile": "bool",
    "at": "timestamp",
    "tags": "list<string>",
    "day of week": "string",
}
FEATURES: dict[str, Any] = {
    "user": {"encode": "hash", "buckets": 99},
    "age": {"encode": "bucketise", "boundaries": [18, 40]},
    "price": {"encode": "numeric", "transform": "log1p"},
    "mobile": {"encode": "vocabulary", "values": ["true", "false"]},
    "hour": {"encode": "hash", "column": "at", "part": "hour", "buckets": 25},
    "tags": {"encode": "hash", "buckets": 50, "dimension": 4},
    "day of week": {"encode": "vocabulary", "values": ["Mo", "Tu"], "dimension": 4},
}
ROWS: list[dict[str, Any]] = [
    {
        "user": "zoë",
        "age": 33,
        "price": 9.5,
        "mobile": True,
        "at": "2013-06-01T07:00:00Z",
        "tags": ["a", "b"],
        "day of week": "Mo",
    },
    dict.fromkeys(COLUMNS),
]
# Of each exported model; a start of TensorFlow takes seconds.
WITHOUT_FOREBAY = """
import sys, json
sys.path = [p for p in sys.path if p]
import tensorflow as tf
for folder in sys.argv[1:]:
    model = tf.saved_model.load(folder).signatures["serving_default"]
    found = model(user=tf.constant(["zoë", ""]), age=tf.constant([33, -2**63], tf.int64),
        price=tf.constant([9.5, float("nan")], tf.float64), mobile=tf.constant(["true", ""]),
        at=tf.constant([1370070000000000, -2**63], tf.int64),
        tags=tf.constant([["a", "b"], ["", ""]]), day_of_week=tf.constant(["Mo", ""]))
    print(json.dumps({name: values.numpy().tolist() for name, values in found.items()}))
assert not any(name.startswith("forebay") for name in sys.modules)
"""
VARIANTS = [("mixture+head", "stream"), ("stream+head", "mixture"), ("stream", "batch")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("g1") / "saved_model"
    folder.mkdir()
    learner = make_towers("mixture", "stream", features=FEATURES, columns=COLUMNS)
    learner.export(folder)
    expected = learner.score(encoded_rows())[:, 0].tolist()
    (folder.parent / "expected.json").write_text(json.dumps(expected))
    return folder


def encoded_rows() -> Any:
    spec = source(COLUMNS)
    layout = layout_of(FEATURES, COLUMNS)
    columns = {name: [row[name] for row in ROWS] for name in COLUMNS}
    columns["at"] = [np.datetime64("2013-06-01T07:00:00", "us").item(), None]
    encoder = Encoder(dataset(FEATURES), spec, layout)
    encoded = encoder.encode(record_batch(spec, columns), np.arange(len(ROWS)))
    return to_minibatch(encoded.batch, [(0, len(ROWS))], "stream", layout)


def expected(model: Path) -> list[float]:
    return list(json.loads((model.parent / "expected.json").read_text()))


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, tuple[Path, Any]]:
    """Exported models and their learners, by names of paradigms and whether sources are paused."""
    made = {}
    for names, paused in itertools.product(VARIANTS, (False, True)):
        folder = tmp_path_factory.mktemp("variant") / "saved_model"
        folder.mkdir()
        learner = make_towers(*names, features=FEATURES, columns=COLUMNS)
        first = learner._seeds[0]
        sources = first.guards[0].paused
        sources.assign([paused] * sources.shape[0])
        rng = np.random.default_rng(1)
        for variable in first.variables.values():
            if variable.dtype.is_floating and variable.shape.rank:
                variable.assign_add(0.01 * rng.normal(size=variable.shape))
        learner.export(folder)
        made[names, paused] = folder, learner
    return made


@pytest.fixture(scope="module")
def served(model: Path, variants: dict[Any, tuple[Path, Any]]) -> dict[Path, Any]:
    folders = [model, *(folder for folder, _ in variants.values())]
    command = [sys.executable, "-c", WITHOUT_FOREBAY, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=model)
    return dict(zip(folders, map(json.loads, done.stdout.splitlines()), strict=True))


def test_a_process_without_forebay_gets_the_trainers_scores(
    model: Path, served: dict[Path, Any]
) -> None:
    assert served[model]["score"] == pytest.approx(expected(model), rel=1e-5)
    assert len(served[model]["memory"]) == 2


def test_embedding_tables_are_written_once(tmp_path: Path) -> None:
    features = {"user": {"encode": "hash", "buckets": 100_000, "dimension": 8}}
    for name, embeddings, tables in (("one", "shared", 1), ("two", "separate", 2)):
        folder = tmp_path / name
        folder.mkdir()
        spec = {"mixture": {"embeddings": embeddings}}
        make_towers("mixture", features=features, model=spec).export(folder)
        stored = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        assert stored == pytest.approx(tables * 100_000 * 8 * 4, rel=0.05)


@pytest.mark.parametrize("names", VARIANTS)
@pytest.mark.parametrize("paused", [False, True])
def test_corrected_and_paused_models_serve_what_the_trainer_answers(
    names: tuple[str, ...],
    variants: dict[Any, tuple[Path, Any]],
    served: dict[Path, Any],
    *,
    paused: bool,
) -> None:
    """Without the delay head: it says what the stream knows, and nobody asks that."""
    folder, learner = variants[names, paused]
    first, scores = learner._seeds[0], learner.score(encoded_rows())
    answers = dict(zip([column.name for column in learner.columns], scores.T, strict=True))
    memory = answers.get("mixture+head/memory", answers.get("mixture/memory", answers.get("batch")))
    assert np.array_equal(answers[names[0]], memory) == paused
    assert served[folder]["score"] == pytest.approx(answers[names[0]].tolist(), rel=1e-5)
    held = sum(file.stat().st_size for file in (folder / "variables").iterdir())
    needed = sum(4 * each.shape.num_elements() for each in first.served(0))
    assert held < 1.2 * needed + 4_000
    heads = [] if first.heads[0] is None else first.heads[0].variables.values()
    assert not {id(each) for each in heads} & {id(each) for each in first.served(0)}


def test_score_prints_json_for_a_file_and_nothing_on_stderr(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n")
    command = [sys.executable, "-m", "forebay", "score", str(model), "--rows", str(file)]
    done = subprocess.run(
        [*command, "--output", "json"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [row["score"] for row in found] == pytest.approx(expected(model), rel=1e-5)
    assert set(found[0]) == {"score", "memory"}


def test_score_prints_a_table_for_one_row(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The folder above the model is understood too: it is what a model's listing names.
    assert run(["score", str(model.parent), "--row", json.dumps(ROWS[0])]) == 0
    shown = capsys.readouterr()
    heading, line = shown.out.splitlines()
    assert heading.split() == ["score", "memory"]
    assert float(line.split()[0]) == pytest.approx(expected(model)[0], rel=1e-3)
    assert shown.err == ""


def test_wrong_calls_say_what_to_do(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, message in (
        ([str(tmp_path), "--row", "{}"], "holds no exported model"),
        ([str(model)], "give either --row JSON or --rows FILE"),
        ([str(model), "--row", "[1]"], "--row: a row must be a JSON object, not list"),
        ([str(model), "--row", "{"], "--row: not JSON"),
        ([str(model), "--rows", str(tmp_path / "no")], "no such file"),
        (
            [str(model), "--row", json.dumps(ROWS[0] | {"usr": "x"})],
            "row 1: the model reads no column 'usr' (did you mean 'user'?)",
        ),
    ):
        assert run(["score", *arguments]) == 1
        assert message in capsys.readouterr().err


def test_without_tensorflow_the_extra_is_named(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert run(["score", str(model), "--row", json.dumps(ROWS[0])]) == 1
    assert "pip install 'forebay[train]'" in capsys.readouterr().err
