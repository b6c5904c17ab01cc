"""TrainerParts: what one trainer process works with, whichever window is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.judging.judges import EventJudges
from forebay.executors.label_join.join import LabelJoins
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.executors.trainer.seal_copier import SealCopier
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.executors.trainer.window.loaded_model import LoadedModel
from forebay.mixture.learner import Learner


@dataclass(frozen=True)
class TrainerParts:
    """Made once by the loop; every window uses the same ones.

    join: None where no label is joined, see `joins_labels`. runtime: see `runtime_of`.
    """

    pipeline: PipelineSpec
    sources: Mapping[str, SourceSpec]
    model_fingerprint: str
    runtime: str
    learner: Learner
    model: LoadedModel
    ledger: Ledger
    chain: ModelChain
    reader: RemoteReader
    progress: ProgressReporter
    archive: WindowArchive
    copier: SealCopier
    join: LabelJoins | None
    judges: EventJudges

    @property
    def names(self) -> list[str]:
        """Uses of sources in the order of their indices."""
        return self.pipeline.use_names
