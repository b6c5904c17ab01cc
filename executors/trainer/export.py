"""Export of what serves, by the trainer that holds the model: written and checked."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import TrainingError
from forebay.executors.job.request import JobRequest
from forebay.executors.judging.gate import GATE_FILE, GateDecision
from forebay.executors.trainer.export_check import check_served
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.system.files import make_folder

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckedExport:
    """Exports one trainer's learner, as it is at the time of the call."""

    request: JobRequest
    layout: FeatureLayout
    learner: Learner
    progress: ProgressReporter

    def write(self, folder: Path, window: str, gate: GateDecision | None) -> None:
        """Write what serves into a folder; what an earlier call left there is removed.

        gate: which variant serves, kept beside it; None where it is the declared one.

        Raises:
            TrainingError: when the model itself answers with what is not finite.
            ExportError: when what was written answers differently from the model.
        """
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        with self.progress.phase("export"):
            self.learner.export(folder, None if gate is None else gate.variant)
            if gate is not None:
                (folder / GATE_FILE).write_text(gate.model_dump_json(indent=1))
        with self.progress.phase("check"):
            self._check(folder, window, None if gate is None else gate.variant)

    def _check(self, directory: Path, window: str, variant: str | None) -> None:
        if not self.learner.paradigms:
            return  # a learner that scores nothing exports nothing that could answer
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
