"""An exported model has to answer raw rows as the trained one answers them encoded."""

from __future__ import annotations

import hashlib
import json
import keyword
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.crashes import disk, tree_at
from support.learning import COLUMNS as PLAIN_COLUMNS
from support.learning import FEATURES as PLAIN
from support.learning import THREADS, dataset, layout_of, make_towers, minibatch, source
from support.links import link
from support.projects import ads_pipeline, clicks_source, history_source

from forebay.config.explain import declared_columns
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.errors import ExportError, TrainingError
from forebay.executors.job.request import JobRequest
from forebay.executors.judging.gate import GateDecision
from forebay.executors.link.local import LocalLink
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.trainer.exports import export as export_module
from forebay.executors.trainer.exports import export_check
from forebay.executors.trainer.exports.export import CheckedExport
from forebay.executors.trainer.exports.export_check import check_served, made_up_rows
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.home.store.folder_store import FolderStore
from forebay.home.store.open import own_store
from forebay.mixture.counting import CountingLearner
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.serving.raw_rows import raw_inputs
from forebay.mixture.serving.scoring import ServedModel
from forebay.mixture.serving.served_features import ServedFeatures
from forebay.system.files.durable import make_folder

# Every encoding on every type that it takes.
FEATURES: dict[str, Any] = {
    "user": {"encode": "hash", "buckets": 50, "dimension": 4},
    "item": {"encode": "vocabulary", "values": [3, 5, 2**40]},
    "sold": {"encode": "vocabulary", "values": ["true"], "dimension": 2},
    "place": {"encode": "vocabulary", "values": ["Köln", "0"]},
    "hour": {"encode": "bucketise", "column": "at", "part": "hour", "boundaries": [6, 12, 18]},
    "weekday": {"encode": "hash", "column": "at", "part": "weekday", "buckets": 9},
    "price": {"encode": "numeric", "transform": "log1p", "mean": 3.0, "scale": 0.5},
    "step": {"encode": "bucketise", "column": "price", "boundaries": [0.5, 1, 10]},
    "age": {"encode": "numeric", "mean": 40, "scale": 12},
    "both": {"encode": "cross", "columns": ["user", "item", "sold"], "buckets": 100},
    "tags": {"encode": "hash", "buckets": 20, "dimension": 4},
    "sizes": {"encode": "bucketise", "boundaries": [0, 1.5]},
}
COLUMNS = {
    "user": "string",
    "item": "int",
    "sold": "bool",
    "place": "string",
    "at": "timestamp",
    "price": "float",
    "age": "int",
    "tags": "list<string>",
    "sizes": "list<float>",
}


@pytest.fixture(scope="module")
def learner() -> Any:
    return make_towers("mixture", "mixed", features=FEATURES, columns=COLUMNS)


@pytest.fixture(scope="module")
def exported(learner: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "saved_model"
    folder.mkdir()
    learner.export(folder)
    return folder


def check(directory: Path, learner: Any, layout: FeatureLayout | None = None) -> float:
    layout = layout or layout_of(FEATURES, COLUMNS)
    return check_served(directory, learner, dataset(FEATURES), source(COLUMNS), layout, THREADS)


def check_plain(directory: Path, learner: Any, *variant: str) -> float:
    data, spec, layout = dataset(PLAIN), source(PLAIN_COLUMNS), layout_of(PLAIN, PLAIN_COLUMNS)
    return check_served(directory, learner, data, spec, layout, THREADS, *variant)


def test_the_exported_model_answers_as_the_trained_one(learner: Any, exported: Path) -> None:
    assert check(exported, learner) <= 1e-6


def test_columns_may_have_any_name(tmp_path: Path) -> None:
    """Python's keywords, TensorFlow's own parameters, and what cannot be a parameter at all."""
    own = ["self", "cls", "args", "kwargs", "name", "training", "inputs", "raw", "signature"]
    odd = ["1st", "a b", "a.b", "a/b", "Ä", "$", "feature.x", "score", "column_class", "Class"]
    names = [*keyword.kwlist, *keyword.softkwlist, *own, *odd]
    features = {name: {"encode": "hash", "buckets": 8, "dimension": 2} for name in names}
    columns = dict.fromkeys(names, "string")
    learner = make_towers("stream", features=features, columns=columns)
    learner.export(tmp_path)
    layout, declared = layout_of(features, columns), source(columns)
    assert check_served(tmp_path, learner, dataset(features), declared, layout, THREADS) <= 1e-5


def test_an_exported_model_is_on_disk_once_it_is_stored(learner: Any, tmp_path: Path) -> None:
    local, store = tmp_path / "g1" / "saved_model", FolderStore(tmp_path / "store")
    with disk(tmp_path) as watched:
        make_folder(local)
        learner.export(local)
        stored = WindowArchive(store, "ads", "main").put("w", 1, "saved_model", local)
        kept = watched.after_power_loss(store.root / stored.name)
        assert kept == tree_at(store.root / stored.name)
    assert isinstance(kept, dict)
    assert kept["content"] == tree_at(local)
    assert "saved_model.pb" in kept["content"]


def test_a_model_that_went_on_learning_is_told_from_its_export(tmp_path: Path) -> None:
    towers = make_towers("mixed")
    towers.export(tmp_path)
    for seed in range(20):
        towers.learn(minibatch("batch", seed))
    with pytest.raises(ExportError, match=f"(?s){tmp_path}.*not published"):
        check_plain(tmp_path, towers)


def test_each_variant_can_serve_beside_a_guard(tmp_path: Path) -> None:
    """The guard's reference answers for those that it pauses, and is no part of any other."""
    towers = make_towers("mixture+head", "batch", "stream")
    for seed in range(4):
        towers.learn(minibatch("stream" if seed % 2 else "batch", seed))
    paused = towers._seeds[0].guards[0].paused
    paused.assign([True] * paused.shape[0])
    for name in towers.paradigms:
        towers.export(tmp_path, name)
        assert check_plain(tmp_path, towers, name) <= 1e-6


@pytest.mark.guarantee(
    "an exported model answers differently from the trained one",
    "red with its path; it is neither linked nor published",
)
@pytest.mark.parametrize(
    ("feature", "change"),
    [
        ("user", {"buckets": 49}),
        ("item", {"values": [5, 3, 2**40]}),
        ("hour", {"boundaries": [6, 12, 19]}),
        ("price", {"mean": 3.1}),
        ("tags", {"buckets": 19}),
    ],
)
def test_a_difference_in_one_definition_is_seen(
    learner: Any, exported: Path, feature: str, change: dict[str, Any]
) -> None:
    """What data executors encode differently, the SavedModel answers differently."""
    changed = {**FEATURES, feature: FEATURES[feature] | change}
    with pytest.raises(ExportError, match="cannot serve"):
        check(exported, learner, layout_of(changed, COLUMNS))


class _Scores:
    """A learner that answers what it is told to."""

    paradigms = ("mixed",)

    def __init__(self, score: Callable[[int], npt.NDArray[np.float32]]) -> None:
        self._score = score

    def score(self, rows: Any) -> npt.NDArray[np.float32]:
        return self._score(len(rows))


def test_a_model_that_is_not_finite_is_the_trainings_fault(exported: Path) -> None:
    broken = _Scores(lambda rows: np.full((rows, 1), np.nan, np.float32))
    with pytest.raises(TrainingError, match="not finite"):
        check(exported, broken)


def test_nan_exports_are_red(learner: Any, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def nothing(self: Any, rows: Any, threads: int) -> list[dict[str, float]]:
        return [{"score": float("nan")} for _ in rows]

    monkeypatch.setattr(export_check.ServedModel, "score", nothing)
    with pytest.raises(ExportError, match="gives nan"):
        check(exported, learner)


def test_rows_are_written_as_a_person_writes_them(exported: Path) -> None:
    """The check goes through the checks of `forebay score`, timestamps as text."""
    layout = layout_of(FEATURES, COLUMNS)
    features = ServedFeatures.model_validate_json((exported / "features.json").read_text())
    rows = [
        {name: export_check._json(layout.types[name], value) for name, value in row.items()}
        for row in made_up_rows(layout)
    ]
    json.dumps(rows)
    inputs, times = raw_inputs(features, rows), [row["at"] for row in made_up_rows(layout)]
    known = [n for n, value in enumerate(times) if value is not None]
    assert [int(inputs["at"][n]) for n in known] == [times[n] for n in known]
    assert layout.types["at"] is ColumnType.TIMESTAMP


def test_what_a_client_sends_for_a_missing_value(exported: Path) -> None:
    """By the signature's own inputs, as docs/serving.md tells it."""
    import tensorflow as tf

    serve = tf.saved_model.load(str(exported)).signatures["serving_default"]
    specs = serve.structured_input_signature[1]
    missing = {tf.int64: -(2**63), tf.float64: float("nan"), tf.string: ""}

    def sent(items: int) -> float:
        """items: how many missing ones stand for a missing list."""
        row = {
            name: tf.constant(missing[spec.dtype], spec.dtype, [1, items][: spec.shape.rank])
            for name, spec in specs.items()
        }
        return float(serve(**row)["score"].numpy()[0])

    (unknown,) = ServedModel(exported).score([dict.fromkeys(COLUMNS)])
    assert {spec.dtype for spec in specs.values()} == missing.keys()
    assert [sent(0), sent(1), sent(3)] == pytest.approx([unknown["score"]] * 3)


MADE_UP: dict[str, Any] = {
    "place": {"encode": "vocabulary", "values": ["Köln", 0]},
    "sold": {"encode": "vocabulary", "values": ["true", "false"]},
    "item": {"encode": "vocabulary", "values": [3, 2**61, 2**63]},
    "count": {"encode": "bucketise", "boundaries": [-(2.0**62), 0.4, 1.6]},
    "hour": {"encode": "bucketise", "column": "at", "part": "hour", "boundaries": [6]},
    "price": {"encode": "numeric", "transform": "log1p", "mean": 3.0, "scale": 0.5},
    "size": {"encode": "numeric", "mean": 0.5, "scale": 0.125},
    "age": {"encode": "numeric", "mean": 40, "scale": 12},
    "pair": {"encode": "cross", "columns": ["place", "item"], "buckets": 100},
    "tags": {"encode": "vocabulary", "values": ["a", "b"]},
    "sizes": {"encode": "bucketise", "boundaries": [0, 1.5]},
}
MADE_UP_COLUMNS = {
    "place": "string",
    "sold": "bool",
    "item": "int",
    "count": "int",
    "at": "timestamp",
    "price": "float",
    "size": "float",
    "age": "int",
    "tags": "list<string>",
    "sizes": "list<float>",
}
_DIGESTS = (
    *("f1c1f525", "81ea9a04", "becf0dad", "72016e48", "b4f54e64", "766e180f", "2c133d44"),
    *("0c2d17cd", "22e40d44", "500dac6b"),
)
DIGESTS = dict(zip(MADE_UP_COLUMNS, _DIGESTS, strict=True))


def digests(count: int) -> dict[str, str]:
    rows = made_up_rows(layout_of(MADE_UP, MADE_UP_COLUMNS), count)
    columns = {name: repr([row[name] for row in rows]) for name in MADE_UP_COLUMNS}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:8] for name, text in columns.items()}


def test_made_up_rows_are_the_same_on_every_machine() -> None:
    assert digests(300) == DIGESTS


def held(feature: dict[str, Any], kind: str) -> set[object]:
    layout = layout_of({"x": {"encode": "numeric", **feature}}, {"x": kind})
    return {row["x"] for row in made_up_rows(layout, 300)}


def test_numbers_that_no_column_can_hold_are_left_out() -> None:
    assert held({"mean": 1e19, "scale": 1e18}, "int") == {None, 2**62}
    logarithms = held({"mean": 702, "scale": 1, "transform": "log1p"}, "float")
    assert logarithms == {None, math.expm1(700)}, "a float ends at e to the power of 709"


def test_so_many_as_are_asked_for() -> None:
    layout = layout_of(MADE_UP, MADE_UP_COLUMNS)
    assert (len(made_up_rows(layout)), made_up_rows(layout)[:9]) == (64, made_up_rows(layout, 9))
    assert made_up_rows(layout, 1) == [dict.fromkeys(layout.types)]


class _Learner(CountingLearner):
    """Exports a text and says that it scores."""

    paradigms = ("mixed",)  # type: ignore[assignment]

    def score(self, minibatch: Any) -> npt.NDArray[np.float32]:
        return np.zeros((len(minibatch), 1), np.float32)


def export_of(tmp_path: Path, learner: CountingLearner) -> CheckedExport:
    pipeline = PipelineSpec.model_validate({"name": "ads", **ads_pipeline()})
    sources = {
        name: SourceSpec.model_validate({"name": name, **spec})
        for name, spec in (("history", history_source()), ("clicks", clicks_source()))
    }
    request = JobRequest.of("j", tmp_path, tmp_path, pipeline, sources, [])
    layout = FeatureLayout.of(pipeline.dataset, declared_columns(pipeline, sources))
    return CheckedExport(
        request, layout, learner, ProgressReporter(LocalLink(tmp_path), ["history"], 1)
    )


def test_a_learner_without_scores_is_exported_as_it_is(tmp_path: Path) -> None:
    target, export = tmp_path / "g1" / "saved_model", export_of(tmp_path, CountingLearner(1))
    export.write(target, "w")
    assert (target / "counts.json").is_file()
    (target / "left.json").write_text("by an earlier attempt")
    export.write(target, "w")
    assert [path.name for path in target.iterdir()] == ["counts.json"]


def test_a_broken_model_names_its_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> float:
        raise TrainingError("the trained model's probabilities are not finite")

    monkeypatch.setattr(export_module, "check_served", broken)
    with pytest.raises(TrainingError, match="window w, after its last step: the trained model"):
        export_of(tmp_path, _Learner(1)).write(tmp_path / "saved_model", "w")


def test_the_gates_variant_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chain: ModelChain
) -> None:
    exported: list[str | None] = []

    class Gated(_Learner):
        def export(self, directory: Path, variant: str | None = None) -> None:
            exported.append(variant)
            super().export(directory, variant)

    def checked(*arguments: Any) -> float:
        exported.append(arguments[-1])
        return 0.0

    monkeypatch.setattr(export_module, "check_served", checked)
    export, target = export_of(tmp_path, Gated(1)), tmp_path / "saved_model"
    export.write(target, "w", "stream")
    export.write(target, "w")
    assert exported == ["stream", "stream", None, None]
    exported.clear()
    store = own_store(chain.home)
    decision = GateDecision(variant="stream", declared="mixed", words="it is better")
    gate = store.put("models", "gate", decision.model_dump_json().encode())
    decided = link("2026-03-01", files={"gate": gate})
    # The declaration has no gate any more; the decision of then still stands, and is not replaced.
    stored = export.store(decided, chain, WindowArchive(store, "ads", "main"), tmp_path / "work")
    assert (exported, list(stored)) == (["stream", "stream"], ["saved_model"])
