"""Export of what serves, by the trainer that holds the model: written, checked, then named."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import TrainingError
from forebay.executors.job.request import JobRequest
from forebay.executors.trainer.export_check import check_served
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.system.files import make_folder
from forebay.system.trees import name_tree

# An export that was not checked, or did not pass, has this name in place of its own.
UNCHECKED_NAME = ".saved_model"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckedExport:
    """Exports one trainer's learner, as it is at the time of the call."""

    request: JobRequest
    layout: FeatureLayout
    learner: Learner
    progress: ProgressReporter

    def write(self, target: Path, window: str) -> None:
        """Write what serves into the folder `target`, unless it is there already.

        Raises:
            TrainingError: when the model itself answers with what is not finite.
            ExportError: when what was written answers differently from the model.
        """
        if target.exists():
            return
        unchecked = target.with_name(UNCHECKED_NAME)
        shutil.rmtree(unchecked, ignore_errors=True)
        make_folder(unchecked)
        with self.progress.phase("export"):
            self.learner.export(unchecked)
        with self.progress.phase("check"):
            self._check(unchecked, window)
        name_tree(unchecked, target)

    def _check(self, directory: Path, window: str) -> None:
        if not self.learner.paradigms:
            return  # a learner that scores nothing exports nothing that could answer
        pipeline = self.request.pipeline_spec()
        source = self.request.source_specs()[pipeline.source_names[0]]
        threads = pipeline.job.roles.trainer.threads
        try:
            difference = check_served(
                directory, self.learner, pipeline.dataset, source, self.layout, threads
            )
        except TrainingError as error:
            raise TrainingError(f"window {window}, after its last step: {error}") from error
        _LOG.info("the exported model answers as the trained one does, to %.1e", difference)
