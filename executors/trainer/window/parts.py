"""TrainerParts: what one trainer process works with, whichever window is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import InfrastructureError
from forebay.executors.judging.judges import EventJudges
from forebay.executors.label_join.join import LabelJoins
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.model_line.start import require_checkpoint
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.executors.trainer.seal_copier import SealCopier
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.mixture.learner import Learner


@dataclass(eq=False)
class LoadedModel:
    """Loads the model of a link, unless the learner already holds it.

    standing: the link whose model the learner holds; None if it holds initial values, or moves.
    """

    learner: Learner
    chain: ModelChain
    archive: WindowArchive
    model_fingerprint: str
    checkpoints_kept: int
    standing: Parent | None = None

    def bring_to_parent(self, parent: Link | None) -> None:
        """Load the model of the window before; without one, keep the initial values.

        Raises:
            DataError: when the checkpoint of the parent is of another model, or damaged.
            InfrastructureError: when a window without a parent follows a trained one.
        """
        if parent is None:
            if self.standing is not None or any(each.rows for each in self.learner.seen()):
                raise InfrastructureError("a window without a parent follows a trained window")
            return
        self.chain.require_same_fingerprint(parent, self.model_fingerprint)
        self.bring_to(parent)

    def bring_to(self, link: Link) -> None:
        """Load a link's model, unless the learner already holds it.

        Raises:
            ConfigError: when its checkpoint is no longer kept.
            DataError: when its checkpoint is damaged.
        """
        if self.standing != link.name:
            require_checkpoint(self.chain, link, self.checkpoints_kept)
            self.archive.load(self.learner, link)
            self.standing = link.name

    def moves(self) -> None:
        """Steps of a window begin: the learner no longer holds the model of a link."""
        self.standing = None

    def ended(self, link: Link) -> None:
        self.standing = link.name


@dataclass(frozen=True)
class TrainerParts:
    """Made once by the loop; every window uses the same ones.

    join: None where no label is joined, see `joined_labels`. runtime: see `runtime_of`.
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
