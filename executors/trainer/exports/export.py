"""Export of the model that serves, written and checked by the trainer that holds it."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import TrainingError
from forebay.executors.job.request import JobRequest
from forebay.executors.judging.evidence.gate_evidence import EVIDENCE_FILE
from forebay.executors.judging.gate import GATE_FILE, gate_decision
from forebay.executors.judging.serving_gate import choose_variant
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import FileKind, Link
from forebay.executors.trainer.exports.export_check import check_served
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.home.store.base import Stored
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.system.files.durable import make_folder, write_atomically

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckedExport:
    """Exports one trainer's learner, as it is at the time of the call."""

    request: JobRequest
    layout: FeatureLayout
    learner: Learner
    progress: ProgressReporter

    def write(self, folder: Path, window: str, variant: str | None = None) -> None:
        """Write the model that serves into a folder; what an earlier call left is removed.

        variant: which one serves; None for the declared one.

        Raises:
            TrainingError: when an answer of the model itself is not finite.
            ExportError: when the written model answers differently from the trained one.
        """
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        with self.progress.phase("export"):
            self.learner.export(folder, variant)
        with self.progress.phase("check"):
            self._check(folder, window, variant)

    def store(
        self, link: Link, chain: ModelChain, archive: WindowArchive, folder: Path
    ) -> dict[FileKind, Stored]:
        """Store the model that serves of a window, and before it, why that variant serves.

        A decision that is recorded stands: later windows, and another declaration, change nothing.

        link: it may not be recorded yet, its scores are in the store. folder: to write to.

        Raises:
            DataError: when the decision, or scores of earlier windows, are missing or damaged.
            InfrastructureError: when the store is full or cannot be reached.
        """
        key, generation = link.window, link.generation
        found, recorded = dict[FileKind, Stored](), gate_decision(chain, link)
        chosen = None if recorded else choose_variant(self.request.pipeline_spec(), chain, link)
        decision = chosen.decision if chosen else recorded
        self.write(folder / "saved_model", key, decision.variant if decision else None)
        with self.progress.phase("store"):
            if chosen is not None:
                _LOG.info("window %s: %s", key, chosen.decision.words)
                write_atomically(folder / GATE_FILE, chosen.decision.model_dump_json(indent=1))
                found["gate"] = archive.put(key, generation, "gate", folder / GATE_FILE)
                write_atomically(folder / EVIDENCE_FILE, chosen.evidence.model_dump_json())
                found["evidence"] = archive.put(key, generation, "evidence", folder / EVIDENCE_FILE)
            model = archive.put(key, generation, "saved_model", folder / "saved_model")
        return {**found, "saved_model": model}

    def _check(self, directory: Path, window: str, variant: str | None) -> None:
        if not self.learner.paradigms:
            return  # a learner that scores nothing exports no answers to compare
        pipeline = self.request.pipeline_spec()
        source, *_ = self.request.source_specs().values()  # all declare the same types
        threads = pipeline.job.roles.trainer.threads
        try:
            difference = check_served(
                directory, self.learner, pipeline.dataset, source, self.layout, threads, variant
            )
        except TrainingError as error:
            raise TrainingError(f"window {window}, after its last step: {error}") from error
        _LOG.info("the exported model answers as the trained one does, to %.1e", difference)
