"""An export gets its name once it is checked, and is not written twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.links import link
from support.projects import ads_pipeline, clicks_source, history_source

from forebay.config.explain import declared_columns
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.errors import TrainingError
from forebay.executors.job.request import JobRequest
from forebay.executors.judging.gate import GateDecision
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.trainer import export as export_module
from forebay.executors.trainer.export import CheckedExport
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.home.store.open import own_store
from forebay.mixture.counting import CountingLearner
from forebay.mixture.features.layout import FeatureLayout


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
    return CheckedExport(request, layout, learner, ProgressReporter(tmp_path, ["history"], 1))


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
